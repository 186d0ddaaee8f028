"""The machinery of experiments: grids of runs, their records, and the tables made from them."""
