"""Mixed precision: sums of short floats are accumulated in float32."""

from typing import Any

import jax.numpy as jnp

from attention_jax.types import Array


def upcast(array: Array) -> Array:
    """Upcasts floats shorter than float32 to float32; returns other arrays as they are.

    A sum in bfloat16 stops growing once it is some hundred times as large as what is added, at 256
    if that is one. Parameters that many rows share, such as a bias, are upcast before they meet the
    rows: their gradients are then summed in float32, too.
    """
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return array
    return array.astype(accumulation_dtype(array))


def accumulation_dtype(*arrays: Array) -> Any:
    """Accumulation type: returns float32 for sums of floats, or float64 if one of them is."""
    return jnp.promote_types(jnp.result_type(*arrays), jnp.float32)
