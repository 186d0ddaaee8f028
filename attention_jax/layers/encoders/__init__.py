"""Encoders, one file each; a file's name is the encoder's name in configs."""
