"""Mixed precision: sums of short floats are accumulated in float32."""

from typing import Any

import jax.numpy as jnp

from attention_jax.types import Array


def upcast(array: Array) -> Array:
    """Returns floats shorter than float32 as float32, and others as they are.

    A sum of bfloat16 stands still once it is some hundred times as large as what is added, at 256
    where that is one. What many rows share, such as a bias, is made longer by this before it meets
    them: its gradient is then a sum of float32, too.
    """
    if not jnp.issubdtype(array.dtype, jnp.floating):
        return array
    return array.astype(accumulation_dtype(array))


def accumulation_dtype(*arrays: Array) -> Any:
    """Returns the type in which sums of floats are made: float32, or float64 if one of them is."""
    return jnp.promote_types(jnp.result_type(*arrays), jnp.float32)
