"""What a training will take, found out before any of its devices is at hand."""
