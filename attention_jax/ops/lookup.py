"""Rows of a table by number: how tokens are embedded."""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from attention_jax.types import Array


def look_up(table: Float[Array, "V D"], ids: Int[Array, "*N"]) -> Float[Array, "*N D"]:
    """Looks up one row for each id.

      rows[n] = table[ids[n]]

    A frequent token adds a gradient to its row a thousand times in a batch. In bfloat16 such a sum
    stops growing at a few hundred times what is added, so it is made in float32 and rounded once.

    Args:
      table: A vector for each id.
      ids: Which ones, each below V.

    Returns:
      Their vectors.

    Source:
      None; the rows of an embedding matrix.

    Deviations:
      None.
    """
    if table.dtype == jnp.float32:
        return table[ids]
    return _look_up(table, ids, table.shape[0])


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _look_up(table: Array, ids: Array, size: int) -> Array:
    return table[ids]


def _forward(table: Array, ids: Array, size: int) -> tuple[Array, Array]:
    return table[ids], ids


def _backward(size: int, ids: Array, gradient: Array) -> tuple[Array, None]:
    sums = jnp.zeros((size, gradient.shape[-1]), jnp.float32)
    return sums.at[ids].add(gradient.astype(jnp.float32)).astype(gradient.dtype), None


_look_up.defvjp(_forward, _backward)
