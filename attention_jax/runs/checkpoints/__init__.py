"""Checkpoints: written whole, verified when read, and kept as long as they are wanted."""
