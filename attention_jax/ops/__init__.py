"""Pure jax.numpy functions: the mathematics of attention and recurrence, with no modules."""
