"""Runs: the run directory, its resolved config, its checkpoints, and loading a trained model."""
