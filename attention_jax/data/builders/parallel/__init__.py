"""The `parallel` data set."""
