"""Readouts, one file each, from features to predictions; a file's name is its name in configs."""
