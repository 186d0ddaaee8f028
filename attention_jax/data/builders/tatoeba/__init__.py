"""The `tatoeba` data set."""
