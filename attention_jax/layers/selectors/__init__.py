"""Selectors, one file each; a file's name is the selector's name in configs."""
