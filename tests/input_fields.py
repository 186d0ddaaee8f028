"""Fields for an input of any kind, of which only the shapes count."""

import jax.numpy as jnp


def zero_fields(reading, rows, length):
    """Returns the fields that an input reads: zeros, with no padding."""
    depth = getattr(reading, "frame_dim", None) or getattr(reading, "cell_values", None)
    ids = jnp.zeros((rows, length), jnp.int32)
    values = jnp.zeros((rows, length, depth)) if depth else ids
    field, mask, *tags = reading.fields
    fields = {field: values, mask: jnp.ones((rows, length), bool)}
    if tags:  # one for each word
        ids, mask = jnp.zeros((rows, 1), jnp.int32), jnp.ones((rows, 1), bool)
        fields |= dict(zip(tags, (ids, mask), strict=True))
    return fields
