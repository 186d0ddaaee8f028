"""Inputs, one file each, from a batch's fields to vectors; a file's name is its name in configs."""
