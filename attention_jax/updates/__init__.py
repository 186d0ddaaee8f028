"""What a training step makes of a state: gradients, optimisers, schedules, averages."""
