"""Strategies, one file each with a function `build(mesh, rules)`; see `devices.strategy`."""
