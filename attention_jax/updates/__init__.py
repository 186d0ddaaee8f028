"""One training step: gradients, optimisers, schedules, averages of parameters."""
