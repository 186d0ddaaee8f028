"""Fault injection: what a training survives, and what is lost."""
