"""Architectures by the `model_type` of their config.json, one file each: `read(folder)`."""
