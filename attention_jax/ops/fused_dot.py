"""Contexts of scaled dot-product attention without weights that anyone could ask for.

On accelerators this is XLA's or cuDNN's fused kernel. On a CPU, queries are answered in blocks
whose scores fit a cache, and their weights are computed again in the backward pass.
"""

import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.ops.normalizers import masked_softmax
from attention_jax.ops.scores import scaled_dot_scores

_BLOCK = 128


def fused_dot_context(
    query: Float[Array, "*B T D"],
    keys: Float[Array, "*#B S D"],
    values: Float[Array, "*#B S Dv"],
    mask: Bool[Array, "*B T S"],
) -> Float[Array, "*B T Dv"]:
    """Averages values under the softmax of scaled dot products.

    context[t] = sum_s softmax_s(query[t] . keys[s] / sqrt(D)) values[s], over what the mask allows

    Args:
      query: What asks.
      keys: What is compared with.
      values: What is averaged.
      mask: True where a slot may be attended to.

    Returns:
      Contexts; zeros where the mask allows nothing.

    Source:
      Vaswani et al. (2017), eq. 1.
    """
    if values.shape[-1] != keys.shape[-1]:  # the library wants one depth
        return _in_blocks(query, keys, values, mask)
    return jax.lax.platform_dependent(
        query, keys, values, mask, cpu=_in_blocks, default=_by_library
    )


def _by_library(query: Array, keys: Array, values: Array, mask: Array) -> Array:
    *batch, num_queries, _ = query.shape
    every = [jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (query, keys, values)]
    one_head = [x.reshape(-1, *x.shape[-2:])[:, :, None] for x in every]
    flat_mask = mask.reshape(-1, 1, *mask.shape[-2:])
    context = jax.nn.dot_product_attention(*one_head, mask=flat_mask)
    context = context.reshape(*batch, num_queries, values.shape[-1])
    # The library averages everything where nothing may be attended to.
    return jnp.where(mask.any(-1, keepdims=True), context, jnp.zeros((), context.dtype))


def _in_blocks(query: Array, keys: Array, values: Array, mask: Array) -> Array:
    num_queries = query.shape[-2]
    if num_queries <= _BLOCK:
        return _block(keys, values, query, mask)
    missing = -num_queries % _BLOCK
    rows = [(0, 0)] * (query.ndim - 2) + [(0, missing), (0, 0)]

    def by_block(array: Array) -> Array:
        padded = jnp.pad(array, rows)
        blocks = padded.reshape(*array.shape[:-2], -1, _BLOCK, array.shape[-1])
        return jnp.moveaxis(blocks, -3, 0)

    answer = jax.checkpoint(functools.partial(_block, keys, values))
    contexts = jax.lax.map(lambda block: answer(*block), (by_block(query), by_block(mask)))
    contexts = jnp.moveaxis(contexts, 0, -3)
    contexts = contexts.reshape(*contexts.shape[:-3], -1, contexts.shape[-1])
    return contexts[..., :num_queries, :]


def _block(keys: Array, values: Array, query: Array, mask: Array) -> Array:
    weights = masked_softmax(scaled_dot_scores(query, keys), mask)
    return jnp.matmul(weights.astype(values.dtype), values)
