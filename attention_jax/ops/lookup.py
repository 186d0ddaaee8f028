"""Embedding look-up, and how windows are gathered, with gradients that are cheap on a CPU.

A frequent token adds a gradient to its row a thousand times in a batch, and so does a slot that
many queries look at. In bfloat16 such a sum stops growing at a few hundred times what is added, so
it is made in float32 and rounded once.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int, Shaped

from attention_jax.ops.summation import upcast
from attention_jax.types import Array


def look_up(table: Float[Array, "V D"], ids: Int[Array, "*N"]) -> Float[Array, "*N D"]:
    """Embedding look-up: takes one row of the table for each id, all of them below V.

      rows[n] = table[ids[n]]
    """
    return _take(lambda table, ids: table[ids], table, ids)


def take_slots(
    rows: Shaped[Array, "*#B S D"], slots: Int[Array, "*#B N"]
) -> Shaped[Array, "*B N D"]:
    """Gather: takes slots, with indices below S, out of each row's own memory.

      taken[b, n] = rows[b, slots[b, n]]
    """

    def take(rows: Array, slots: Array) -> Array:
        return jnp.take_along_axis(rows, slots[..., None], axis=-2, mode="clip")

    return _take(take, rows, slots)


def _take(take: Callable[[Array, Array], Array], rows: Array, ids: Array) -> Array:
    is_short = jnp.issubdtype(rows.dtype, jnp.floating) and rows.dtype.itemsize < 4
    return _take_short(take, rows, ids) if is_short else take(rows, ids)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _take_short(take: Callable[[Array, Array], Array], rows: Array, ids: Array) -> Array:
    return take(rows, ids)


@_take_short.defjvp
def _take_tangent(
    take: Callable[[Array, Array], Array], primals: tuple, tangents: tuple
) -> tuple[Array, Array]:
    rows, ids = primals
    # Transposed, this rounds what was added up in float32.
    tangent = take(upcast(tangents[0]), ids).astype(rows.dtype)
    # The value itself is gathered in its short type; only its gradient is a sum.
    return _take_short(take, rows, ids), tangent
