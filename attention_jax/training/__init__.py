"""The training loop and its parts: state, step, schedules, checkpoints."""
