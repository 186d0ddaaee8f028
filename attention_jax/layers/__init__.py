"""Flax Linen shells: they declare parameters and call the pure functions of `ops`."""
