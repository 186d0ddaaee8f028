"""Poolings, one file each; a file's name is the pooling's name in configs."""
