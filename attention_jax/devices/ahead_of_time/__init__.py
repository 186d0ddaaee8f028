"""Ahead-of-time compilation: what a training step takes on devices that are not at hand."""
