"""Sweeps: grids of runs, one after another or side by side, their records and their tables."""
