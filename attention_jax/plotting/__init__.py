"""Pictures of attention and of training, as matplotlib figures without any global state."""
