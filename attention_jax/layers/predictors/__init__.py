"""Auxiliary predictors, one file each; a file's name is the key of what it predicts."""
