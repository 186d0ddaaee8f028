"""Rows by number: how tokens are embedded, and how windows are gathered.

A frequent token adds a gradient to its row a thousand times in a batch, and so does a slot that
many queries look at. In bfloat16 such a sum stops growing at a few hundred times what is added, so
it is made in float32 and rounded once.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int, Shaped

from attention_jax.types import Array


def look_up(table: Float[Array, "V D"], ids: Int[Array, "*N"]) -> Float[Array, "*N D"]:
    """Looks up one row for each id.

      rows[n] = table[ids[n]]

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
    return _take(lambda table, ids: table[ids], table, ids)


def take_slots(
    rows: Shaped[Array, "*#B S D"], slots: Int[Array, "*#B N"]
) -> Shaped[Array, "*B N D"]:
    """Takes rows out of each memory.

      taken[b, n] = rows[b, slots[b, n]]

    Args:
      rows: A vector for each slot, of any type.
      slots: Which ones, each below S.

    Returns:
      Their vectors.

    Source:
      None; the slots of a window.

    Deviations:
      None.
    """

    def take(rows: Array, slots: Array) -> Array:
        return jnp.take_along_axis(rows, slots[..., None], axis=-2, mode="clip")

    return _take(take, rows, slots)


def _take(take, rows: Array, ids: Array) -> Array:
    is_short = jnp.issubdtype(rows.dtype, jnp.floating) and rows.dtype.itemsize < 4
    return _take_short(take, rows.shape, rows, ids) if is_short else take(rows, ids)


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _take_short(take, shape: tuple[int, ...], rows: Array, ids: Array) -> Array:
    return take(rows, ids)


def _forward(take, shape: tuple[int, ...], rows: Array, ids: Array) -> tuple[Array, Array]:
    return take(rows, ids), ids


def _backward(take, shape: tuple[int, ...], ids: Array, gradient: Array) -> tuple[Array, None]:
    rows = jax.ShapeDtypeStruct(shape, jnp.float32)
    (sums,) = jax.linear_transpose(lambda rows: take(rows, ids), rows)(
        gradient.astype(jnp.float32)
    )
    return sums.astype(gradient.dtype), None


_take_short.defvjp(_forward, _backward)
