"""Attention mechanisms as pure functions, and everything needed to train and compare them."""
