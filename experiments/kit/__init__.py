"""Machinery of experiments: grids of runs, their records, and tables made from them."""
