"""Aligners of a model, one file each; its name is the one that `model.aligner` has for it."""
