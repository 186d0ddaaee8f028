"""One file for each experiment; data only."""
