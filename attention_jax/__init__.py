"""Attention mechanisms as pure functions, and everything needed to train and compare them."""

__version__ = "0.1.0"
