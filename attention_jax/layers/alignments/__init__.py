"""Latent alignments, one file each; its name is the one that the readout `marginal` has for it."""
