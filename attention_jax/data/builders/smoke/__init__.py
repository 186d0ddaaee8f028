"""The `smoke` data set."""
