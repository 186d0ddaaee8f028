"""Scores of outputs and of attention, from plain lists of strings and arrays."""
