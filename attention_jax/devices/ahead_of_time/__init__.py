"""Ahead-of-time compilation: memory and communication of a step on devices not at hand."""
