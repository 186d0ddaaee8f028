"""Alignment scores: how well a query matches each slot of a memory, before normalisation.

Every function takes named arrays, returns float32 (float64 where they are) and leaves the mask to
the normalizer. Leading batch axes are free, so that beams are only further axes; heads are mapped
over, parameters and all.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention_jax.ops.custom_gradients import with_backward
from attention_jax.ops.summation import accumulation_dtype, upcast
from attention_jax.types import Memory, Params, State

_NO_SCORE = float("-inf")


def dot_scores(
    query: Float[Array, "*#B T D"], keys: Float[Array, "*#B S D"]
) -> Float[Array, "*B T S"]:
    """Dot-product score.

    scores[t, s] = query[t] . keys[s]

    Source:
      Luong et al. (2015), section 3.1, below eq. 7, first case.
    """
    return _product(query, jnp.swapaxes(keys, -1, -2))


def scaled_dot_scores(
    query: Float[Array, "*#B T D"], keys: Float[Array, "*#B S D"]
) -> Float[Array, "*B T S"]:
    """Scaled dot-product score.

    scores[t, s] = query[t] . keys[s] / sqrt(D)

    Scores have unit variance where the components are independent and have it.

    Source:
      Vaswani et al. (2017), section 3.2.1, eq. 1.
    """
    return dot_scores(query, keys) * (query.shape[-1] ** -0.5)


def general_scores(
    query: Float[Array, "*#B T Dq"],
    keys: Float[Array, "*#B S Dk"],
    kernel: Float[Array, "Dq Dk"],
) -> Float[Array, "*B T S"]:
    """General score: a learned bilinear form of query and key.

    scores[t, s] = query[t]^T kernel keys[s]

    Mechanisms call `project_general_keys` once for a source, and `dot_scores` for every query.

    Source:
      Luong et al. (2015), section 3.1, below eq. 7, second case.
    """
    return dot_scores(query, project_general_keys(keys, kernel))


def project_general_keys(
    keys: Float[Array, "*#B S Dk"], kernel: Float[Array, "Dq Dk"]
) -> Float[Array, "*B S Dq"]:
    """Multiplies every key by a bilinear form, so that a dot product with a query remains."""
    return keys @ kernel.T


def concat_scores(
    query: Float[Array, "*#B T Dq"],
    keys: Float[Array, "*#B S Dk"],
    kernel: Float[Array, "Dqk Da"],
    vector: Float[Array, "Da"],
) -> Float[Array, "*B T S"]:
    """Concat score: a hidden layer over the concatenation of query and key.

    scores[t, s] = vector . tanh(kernel^T [query[t]; keys[s]])

    The first `Dq` rows of the kernel meet the query, the others the key, which is not projected.

    Raises:
      ValueError: If the kernel's rows are not as many as query and key are deep together.

    Source:
      Luong et al. (2015), section 3.1, below eq. 7, third case.

    Deviations:
      The concatenation is never formed: [W_q; W_k] applied to it is W_q query + W_k key.
    """
    depth = query.shape[-1]
    if kernel.shape[-2] != depth + keys.shape[-1]:
        raise ValueError(
            f"kernel: expected {depth} + {keys.shape[-1]} rows, found {kernel.shape[-2]}"
        )
    return additive_scores(query @ kernel[:depth], keys @ kernel[depth:], vector)


def location_scores(
    query: Float[Array, "*#B T Dq"],
    kernel: Float[Array, "Dq M"],
    num_slots: int,
    positions: Int[Array, "*#B S"] | None = None,
) -> Float[Array, "*B T {num_slots}"]:
    """Location score: scores slots by their position alone, whatever they hold.

    scores[t, s] = (kernel^T query[t])[s]

    Args:
      query: What asks.
      kernel: One column for each of the first `M` positions.
      num_slots: How many slots the memory has.
      positions: Where each slot stands; at its index if not given.

    Source:
      Luong et al. (2015), section 3.1, eq. 8.

    Deviations:
      Slots beyond the `M`-th position, for which there is no column, score minus infinity and get
      no weight.
    """
    columns = _product(query, kernel)
    # Slot s stands at s: the columns are the scores, cut off or filled up.
    if positions is None and isinstance(num_slots, int):
        scores = columns[..., :num_slots]
        missing = num_slots - scores.shape[-1]
        widths = [(0, 0)] * (scores.ndim - 1) + [(0, missing)]
        return jnp.pad(scores, widths, constant_values=_NO_SCORE)
    places = (jnp.arange(num_slots) if positions is None else positions)[..., None, :]
    nowhere = kernel.shape[-1]  # also for what stands before the first
    # An index below zero would count from the end.
    places = jnp.where(places < 0, nowhere, places)
    places = jnp.broadcast_to(places, (*columns.shape[:-1], num_slots))
    return jnp.take_along_axis(columns, places, axis=-1, mode="fill", fill_value=_NO_SCORE)


def additive_scores(
    query: Float[Array, "*#B T Da"],
    keys: Float[Array, "*#B S Da"],
    vector: Float[Array, "Da"],
) -> Float[Array, "*B T S"]:
    """Additive score: one hidden layer over a projected query and a projected key.

    scores[t, s] = vector . tanh(query[t] + keys[s])

    The `T x S x Da` hidden layer is the largest tensor of such a model. The backward pass
    computes it again instead of keeping it: one query at a time on a CPU, fused into the sums of
    its gradients elsewhere.

    Args:
      query: Projected queries, W_a s in the paper.
      keys: Projected keys, U_a h in the paper, the same for all queries.
      vector: From the hidden layer to a score, v_a in the paper.

    Source:
      Bahdanau et al. (2015), section 3.1 and appendix A.1.2.
    """
    return _additive(query, keys, vector)


def _additive_forward(query: Array, keys: Array, vector: Array) -> Array:
    # A CPU computes a hidden layer that it writes, and multiplies, three to seven times as fast as
    # one that is reduced as it is computed; one query's is as small as the keys. Other devices
    # never write it.
    return jax.lax.platform_dependent(query, keys, vector, cpu=_by_query, default=_fused)


def _fused(query: Array, keys: Array, vector: Array) -> Array:
    hidden = _hidden(query[..., :, None, :], keys[..., None, :, :])  # *B T S Da
    return jnp.sum(upcast(hidden) * upcast(vector), axis=-1)


def _by_query(query: Array, keys: Array, vector: Array) -> Array:
    def one_query(row: Array) -> Array:
        hidden = _hidden(row[..., None, :], keys)  # *B S Da
        return _product(hidden, vector)

    if query.shape[-2] == 1:
        return one_query(jnp.squeeze(query, -2))[..., None, :]
    # T *B Da -> T *B S -> *B T S
    return jnp.moveaxis(jax.lax.map(one_query, jnp.moveaxis(query, -2, 0)), 0, -2)


def _product(left: Array, right: Array) -> Array:
    return jnp.matmul(left, right, preferred_element_type=accumulation_dtype(left, right))


def _hidden(query: Array, keys: Array) -> Array:
    # Upcast for the backward pass, whose gradients are sums over all slots or all queries.
    return jnp.tanh((upcast(query) + upcast(keys)).astype(keys.dtype))


def _additive_save(query: Array, keys: Array, vector: Array) -> tuple[Array, None]:
    return _additive_forward(query, keys, vector), None


def _additive_backward(
    arguments: tuple[Array, Array, Array], saved: None, cotangent: Array
) -> tuple[Array, Array, Array]:
    query, keys, vector = arguments
    if query.shape[-2] == 1:
        return jax.vjp(_additive_forward, query, keys, vector)[1](cotangent)
    return jax.lax.platform_dependent(
        query, keys, vector, cotangent, cpu=_pull_by_query, default=_pull_fused
    )


def _pull_by_query(
    query: Array, keys: Array, vector: Array, cotangent: Array
) -> tuple[Array, Array, Array]:
    def one_query(sums: tuple, step: tuple) -> tuple[tuple, Array]:
        row, row_cotangent = (jnp.expand_dims(part, -2) for part in step)
        _, pullback = jax.vjp(_additive_forward, row, keys, vector)
        row_gradient, *gradients = pullback(row_cotangent)
        return tuple(map(jnp.add, sums, gradients)), jnp.squeeze(row_gradient, -2)

    # One query's hidden layer at a time: the gradients of keys and vector are summed on the way.
    rows = (jnp.moveaxis(query, -2, 0), jnp.moveaxis(cotangent, -2, 0))
    zeros = tuple(upcast(jnp.zeros_like(part)) for part in (keys, vector))
    (of_keys, of_vector), of_query = jax.lax.scan(one_query, zeros, rows)
    of_query = jnp.moveaxis(of_query, 0, -2)
    return of_query, of_keys.astype(keys.dtype), of_vector.astype(vector.dtype)


def _pull_fused(
    query: Array, keys: Array, vector: Array, cotangent: Array
) -> tuple[Array, Array, Array]:
    arguments, found = (query, keys, vector), []
    # Scores are symmetric in queries and keys. The sum over queries, of the keys' gradient, XLA
    # fuses as it stands; before one over slots it would write the hidden layer, transposed.
    swapped = jnp.swapaxes(cotangent, -1, -2)
    for order, place, upstream in (
        ((1, 0, 2), 1, swapped), ((0, 1, 2), 1, cotangent), ((0, 1, 2), 2, cotangent)
    ):  # fmt: skip
        # Behind a barrier each gradient has a hidden layer of its own, which its sum absorbs: one
        # that all three read would be written. Barriers of equal operands would become one.
        arguments, found = jax.lax.optimization_barrier((arguments, found))
        found = [*found, _pull_one([arguments[i] for i in order], place, upstream)]
    return tuple(found)


def _pull_one(arguments: Sequence[Array], place: int, cotangent: Array) -> Array:
    def scores(argument: Array) -> Array:
        return _fused(*arguments[:place], argument, *arguments[place + 1 :])

    return jax.vjp(scores, arguments[place])[1](cotangent)[0]


_additive = with_backward(_additive_forward, _additive_save, _additive_backward)


def score_dot(
    params: Params, query: Array, memory: Memory, state: State, positions: Array
) -> Array:
    """Dot-product score of a memory's slots, with the arguments that a score has."""
    return dot_scores(query, memory.keys)


def score_scaled_dot(
    params: Params, query: Array, memory: Memory, state: State, positions: Array
) -> Array:
    """Scaled dot-product score of a memory's slots, with the arguments that a score has."""
    return scaled_dot_scores(query, memory.keys)


def product_scale(score: Any, depth: int) -> float | None:
    """Returns what a score multiplies dot products of that depth by; None for any other score."""
    return {score_dot: 1.0, score_scaled_dot: depth**-0.5}.get(score)
