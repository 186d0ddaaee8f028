"""The `cmudict` data set."""
