"""Fused scaled dot-product attention: contexts alone, without the weights in between.

On accelerators this is the library's attention, which XLA compiles; cuDNN's kernel, which the
library knows as well, is not asked for. On a CPU, long sequences are answered one after the other
and in blocks of queries, whose weights are computed again in the backward pass (Dao et al. 2022,
without tiles over the slots). Mechanisms map over their heads from outside, so that a block holds
the scores of all heads, `_BLOCK` of each.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.ops.custom_gradients import with_backward
from attention_jax.ops.normalizers import LOWEST, masked_softmax, softmax_normalizer
from attention_jax.ops.pattern import Queries
from attention_jax.ops.products import average_values
from attention_jax.ops.scores import dot_scores, scaled_dot_scores, score_scaled_dot
from attention_jax.ops.summation import accumulation_dtype
from attention_jax.types import Memory, Params

_SHORT = 256  # queries; that few are answered for all heads at once
_BLOCK = 2**18  # scores, of each head that is mapped over from outside


def fused_dot_attention(
    spec: Any, params: Params, queries: Queries, memory: Memory
) -> Array | None:
    """Fused attention: returns contexts `*B T Dv` if `spec` is plain scaled dot-product attention.

    Returns None where `spec`, an `ops.attend.AttentionSpec`, computes something else, where the
    weights are changed before the average, as by dropout, and where fusing is not asked for.
    """
    is_plain = (
        spec.score is score_scaled_dot
        and spec.normalizer is softmax_normalizer
        and spec.average is average_values
        and spec.reweight is None
        and not (spec.dropout and queries.call.train)
    )
    if not (is_plain and queries.is_fused and queries.bias is None):
        return None
    allowed = queries.within(memory)
    return fused_dot_context(queries.vectors, memory.keys, memory.values, allowed)


def fused_dot_context(
    query: Float[Array, "*B T D"],
    keys: Float[Array, "*#B S D"],
    values: Float[Array, "*#B S Dv"],
    mask: Bool[Array, "*#B #T S"],
) -> Float[Array, "*B T Dv"]:
    """Scaled dot-product attention: averages values under the softmax of scaled dot products.

    context[t] = sum_s softmax_s(query[t] . keys[s] / sqrt(D)) values[s], over what the mask allows

    Contexts are zeros where the mask allows nothing.

    Source:
      Vaswani et al. (2017), eq. 1.
    """
    if not keys.shape[-2]:
        return jnp.zeros((*query.shape[:-1], values.shape[-1]), values.dtype)
    return jax.lax.platform_dependent(
        query, keys, values, mask, cpu=_on_cpu, default=_by_library
    )


def _by_library(query: Array, keys: Array, values: Array, mask: Array) -> Array:
    *batch, num_queries, _ = query.shape
    depth = max(keys.shape[-1], values.shape[-1])  # the library wants one for all
    every = [
        jnp.broadcast_to(_deepened(x, depth), (*batch, x.shape[-2], depth))
        for x in (query, keys, values)
    ]
    one_head = [x.reshape(-1, *x.shape[-2:])[:, :, None] for x in every]  # N T 1 D
    flat_mask = jnp.broadcast_to(mask, (*batch, *mask.shape[-2:]))
    flat_mask = flat_mask.reshape(-1, 1, *mask.shape[-2:])
    # Of the depth before it was padded.
    scale = query.shape[-1] ** -0.5
    context = jax.nn.dot_product_attention(*one_head, mask=flat_mask, scale=scale)
    context = context.reshape(*batch, num_queries, depth)[..., : values.shape[-1]]
    # The library averages everything where nothing may be attended to.
    return jnp.where(mask.any(-1, keepdims=True), context, jnp.zeros((), context.dtype))


def _deepened(array: Array, depth: int) -> Array:
    """Adds zeros, which change no product."""
    return jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, depth - array.shape[-1])])


def _on_cpu(query: Array, keys: Array, values: Array, mask: Array) -> Array:
    if query.shape[-2] <= _SHORT:
        scores = scaled_dot_scores(query, keys)
        weights = masked_softmax(scores, jnp.broadcast_to(mask, scores.shape))
        # All scores at once are small here, and cheaper to keep than to compute again.
        return jnp.matmul(weights.astype(values.dtype), values)
    *batch, num_queries, _ = query.shape

    def by_head(array: Array) -> Array:
        return jnp.broadcast_to(array, (*batch, *array.shape[-2:])).reshape(-1, *array.shape[-2:])

    heads = [by_head(array) for array in (query, keys, values, mask)]  # *B T D -> N T D
    return _by_head(*heads).reshape(*batch, num_queries, values.shape[-1])


def _forward(query: Array, keys: Array, values: Array, mask: Array) -> tuple[Array, tuple]:
    """Answers queries `N T D`, one of N heads after the other."""

    def one_head(head: tuple) -> tuple[Array, Array]:
        query, keys, values, mask = head
        return jax.lax.map(lambda block: _answer(keys, values, *block), (query, mask))

    blocks = [_in_blocks(array, query.shape[1], keys.shape[1]) for array in (query, mask)]
    found = jax.lax.map(one_head, (blocks[0], keys, values, blocks[1]))
    context, normalizer = (_joined(array, query.shape[1]) for array in found)
    return context, (context, normalizer)


def _answer(keys: Array, values: Array, query: Array, mask: Array) -> tuple[Array, Array]:
    """Returns contexts, and the logarithm of what normalises their weights."""
    scores = jnp.where(mask, scaled_dot_scores(query, keys), LOWEST)
    # One number a row, from which the backward pass can compute the weights again.
    highest = jnp.max(scores, axis=-1, keepdims=True)
    weights = jnp.where(mask, jnp.exp(scores - highest), 0)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    total = jnp.where(total > 0, total, 1)  # nothing may be attended to
    context = jnp.matmul(
        weights.astype(values.dtype), values, preferred_element_type=accumulation_dtype(values)
    )
    return (context / total).astype(values.dtype), highest + jnp.log(total)


def _backward(
    arguments: tuple, saved: tuple, cotangent: Array
) -> tuple[Array, Array, Array, None]:
    query, keys, values, mask = arguments
    context, normalizer = saved
    num_queries, num_slots = query.shape[1], keys.shape[1]
    dtype = accumulation_dtype(cotangent)
    # sum_s weights[s] (cotangent . values[s]), the softmax's part that all slots of a row share.
    shared = jnp.sum(cotangent * context, axis=-1, keepdims=True, dtype=dtype)

    def one_head(head: tuple) -> tuple[Array, Array, Array]:
        keys, values, *blocks = head

        # Each block has queries of its own, but keys and values are shared: their gradients add up.
        def one_block(sums: tuple, block: tuple) -> tuple[tuple, Array]:
            of_query, *more = _differentiate(keys, values, *block)
            return tuple(map(jnp.add, sums, more)), of_query

        zeros = tuple(jnp.zeros(array.shape, accumulation_dtype(array)) for array in (keys, values))
        (of_keys, of_values), of_query = jax.lax.scan(one_block, zeros, tuple(blocks))
        return of_query, of_keys, of_values

    blocks = [
        _in_blocks(array, num_queries, num_slots)
        for array in (query, mask, cotangent, shared, normalizer)
    ]
    of_query, *rest = jax.lax.map(one_head, (keys, values, *blocks))
    gradients = (_joined(of_query, num_queries), *rest)
    inputs = (query, keys, values)
    return *(one.astype(of.dtype) for one, of in zip(gradients, inputs, strict=True)), None


def _differentiate(
    keys: Array,
    values: Array,
    query: Array,
    mask: Array,
    cotangent: Array,
    shared: Array,
    normalizer: Array,
) -> tuple[Array, Array, Array]:
    """Returns the gradients by queries, keys and values.

    Scores have a row for each slot here, since a CPU is slow at products with the transpose of
    what is as large as they are, and there would be two of them in place of one.
    """
    weights = jnp.where(mask.T, jnp.exp(scaled_dot_scores(keys, query) - normalizer.T), 0)  # S Q
    # `of_x` is the gradient by x. The softmax's: w (dw - sum w dw), with dw = values . cotangent.
    of_scores = weights * (dot_scores(values, cotangent) - shared.T) * query.shape[-1] ** -0.5
    of_scores, weights = of_scores.astype(keys.dtype), weights.astype(values.dtype)
    product = functools.partial(jnp.matmul, preferred_element_type=accumulation_dtype(keys))
    of_query = product(of_scores.T, keys)
    of_keys = product(of_scores, query)
    of_values = product(weights, cotangent)
    return of_query, of_keys, of_values


_by_head = with_backward(lambda *arguments: _forward(*arguments)[0], _forward, _backward)


def _in_blocks(array: Array, num_queries: int, num_slots: int) -> Array:
    """Cuts `N T ...` into `N blocks rows ...`; what is the same for all queries is repeated."""
    rows = min(num_queries, max(_BLOCK // num_slots, 1))
    if array.shape[1] == 1:
        number = -(-num_queries // rows)
        # Such as the mask of a source's padding, `N 1 S`.
        return jnp.broadcast_to(array[:, None], (array.shape[0], number, *array.shape[1:]))
    # The last block is filled up with queries that a mask of False lets read nothing.
    missing = -num_queries % rows
    array = jnp.pad(array, [(0, 0), (0, missing), (0, 0)])
    return array.reshape(array.shape[0], -1, rows, array.shape[-1])


def _joined(blocks: Array, num_queries: int) -> Array:
    return blocks.reshape(blocks.shape[0], -1, blocks.shape[-1])[:, :num_queries]
