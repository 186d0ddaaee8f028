"""The `multi30k` data set."""
