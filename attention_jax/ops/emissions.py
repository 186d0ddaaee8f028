"""Emissions: the distribution of the next token, given the slot that it is written from.

  p(v | slot s) = softmax(table tanh(annotations[s] + query) + bias)[v]

With S slots, T queries and V tokens there are S T V logits, of which nothing is kept. They are
computed for a few slots at a time, and again in a backward pass; what stays is one number for each
slot and query, the log-normalizer, with which the log-probability of any one token is a product of
two vectors.
"""

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention_jax.ops.lattices import NEVER
from attention_jax.ops.lookup import look_up
from attention_jax.ops.summation import accumulation_dtype, upcast
from attention_jax.types import Leaf, SpecialIds

# Logits that are held at a time, 16 MiB of them, or those of one slot for all queries.
MOST_LOGITS = 2**22


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Emissions:
    """What all emissions of some queries at some slots are computed from.

    Attributes:
      query: `*B D`, the decoder's part of the hidden layer.
      annotations: `*#B S D`, the slots' part of it.
      table: `V D`, a row for each token.
      bias: `V`.
      may_end: `*#B S`, True at slots from which EOS may be written.
    """

    query: Leaf
    annotations: Leaf
    table: Leaf
    bias: Leaf
    may_end: Leaf


def emission_normalizers(emissions: Emissions) -> Float[Array, "*B S"]:
    """Returns the logarithm of the sum of exponentiated logits, for each slot and query."""
    return _over_slots(lambda part: jax.nn.logsumexp(_logits(part), axis=-1), emissions)


def emission_log_probs(
    emissions: Emissions, normalizers: Float[Array, "*B S"], tokens: Int[Array, "*B"]
) -> Float[Array, "*B S"]:
    """Returns the log-probability of one token for each query, at each slot.

    Args:
      emissions: What they are computed from.
      normalizers: From `emission_normalizers`.
      tokens: Which token.

    Returns:
      float32, or float64; about `NEVER` for EOS where nothing may end.
    """
    # *B D and *B: of one token, the product of two vectors for each slot.
    rows, bias = look_up(emissions.table, tokens), upcast(emissions.bias)[tokens]

    def logits(part: Emissions) -> Array:
        product = jnp.einsum(
            "...sd,...d->...s", _hidden(part), rows,
            preferred_element_type=accumulation_dtype(rows),
        )  # fmt: skip
        is_possible = part.may_end | (tokens != SpecialIds.EOS)[..., None]
        return jnp.where(is_possible, product + bias[..., None], NEVER)

    return _over_slots(logits, emissions) - normalizers


def mixture_log_probs(
    emissions: Emissions, normalizers: Float[Array, "*B S"], log_weights: Float[Array, "*B S"]
) -> Float[Array, "*B V"]:
    """Mixture of softmaxes: the distributions of all slots, averaged under weights of the slots.

    log p(v) = log sum_s exp(log_weights[s]) p(v | slot s)

    Args:
      emissions: What they are computed from.
      normalizers: From `emission_normalizers`.
      log_weights: Logarithms of the weights.

    Returns:
      float32, or float64; about `NEVER` where no slot writes a token.
    """
    if _number_of_chunks(emissions)[0] == 1:
        # All logits at once where there is room: *B S V -> *B V.
        return jax.nn.logsumexp(_terms(emissions, normalizers, log_weights), axis=-2)
    return _mixture(emissions, normalizers, log_weights)


@jax.custom_jvp
def _mixture(emissions: Emissions, normalizers: Array, log_weights: Array) -> Array:
    def add(total: Array, chunk: tuple) -> tuple[Array, None]:
        terms = _terms(_at(emissions, *chunk[:2]), *chunk[2:])  # *B C V
        return jnp.logaddexp(total, jax.nn.logsumexp(terms, axis=-2)), None

    shape = (*log_weights.shape[:-1], emissions.table.shape[0])
    nothing = jnp.full(shape, NEVER, log_weights.dtype)
    return jax.lax.scan(add, nothing, _chunks(emissions, normalizers, log_weights))[0]


@_mixture.defjvp
def _mixture_tangent(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """Differentiates a plain sum: of one by logarithms, each addition would keep what it adds to.

    log p(v) = m(v) + log sum_s exp(terms[s, v] - m(v)), whatever m is; with log p itself, what is
    added up is at most one.
    """
    mixture, may_end = _mixture(*primals), primals[0].may_end

    def log_of_sum(query: Array, annotations: Array, table: Array, bias: Array, *rest: Array):
        emissions = Emissions(query, annotations, table, bias, may_end)

        def add(total: Array, chunk: tuple) -> tuple[Array, None]:
            terms = _terms(_at(emissions, *chunk[:2]), *chunk[2:])  # *B C V
            # A share of the mixture's own probability: all of them add up to one.
            return total + jnp.exp(terms - mixture[..., None, :]).sum(-2), None

        body = jax.checkpoint(add, prevent_cse=False)
        total, _ = jax.lax.scan(body, jnp.zeros_like(mixture), _chunks(emissions, *rest))
        return jnp.log(total)

    floats, slopes = (
        (of.query, of.annotations, of.table, of.bias, *rest) for of, *rest in (primals, tangents)
    )
    return mixture, jax.jvp(log_of_sum, floats, slopes)[1]


def _terms(emissions: Emissions, normalizers: Array, log_weights: Array) -> Array:
    return _logits(emissions) + (log_weights - normalizers)[..., None]


def _hidden(emissions: Emissions) -> Float[Array, "*B S D"]:
    # In float32, since gradients of queries are sums over slots, and those of slots over queries.
    total = upcast(emissions.query)[..., None, :] + upcast(emissions.annotations)
    return jnp.tanh(total).astype(emissions.table.dtype)


def _logits(emissions: Emissions) -> Float[Array, "*B S V"]:
    hidden, table = _hidden(emissions), emissions.table
    rows = hidden.reshape(-1, hidden.shape[-1])  # one product for all queries and slots
    product = jnp.matmul(rows, table.T, preferred_element_type=accumulation_dtype(rows))
    logits = (product + upcast(emissions.bias)).reshape(*hidden.shape[:-1], table.shape[0])
    is_end = jnp.arange(logits.shape[-1]) == SpecialIds.EOS
    return jnp.where(emissions.may_end[..., None] | ~is_end, logits, NEVER)


def _over_slots(
    function: Callable[[Emissions], Array], emissions: Emissions
) -> Float[Array, "*B S"]:
    """Computes one number for each slot and query, for a few slots at a time."""
    if _number_of_chunks(emissions)[0] == 1:
        return function(emissions)

    def of_chunk(chunk: tuple[Array, Array]) -> Array:
        return function(_at(emissions, *chunk))

    body = jax.checkpoint(of_chunk, prevent_cse=False)
    found = jnp.moveaxis(jax.lax.map(body, _chunks(emissions)), 0, -2)  # *B N C
    *batch, number, size = found.shape
    return found.reshape(*batch, number * size)[..., : emissions.annotations.shape[-2]]


def _at(emissions: Emissions, annotations: Array, may_end: Array) -> Emissions:
    return dataclasses.replace(emissions, annotations=annotations, may_end=may_end)


def _number_of_chunks(emissions: Emissions) -> tuple[int, int]:
    """Returns (number, size) of the chunks of slots for which there is room at a time."""
    annotations = emissions.annotations
    batch = jnp.broadcast_shapes(emissions.query.shape[:-1], annotations.shape[:-2])
    slots, width = annotations.shape[-2], math.prod(batch) * max(emissions.table.shape)
    # -(-a // b) rounds up.
    number = max(1, -(-slots // max(1, MOST_LOGITS // max(width, 1))))
    return number, -(-slots // number)


def _chunks(emissions: Emissions, *rest: Array) -> tuple[Array, ...]:
    """Cuts annotations, `may_end` and arrays `*B S` into chunks of slots, on a leading axis.

    The last chunk is filled up with slots that have no weight, where the last array is weights.
    """
    number, size = _number_of_chunks(emissions)

    def cut(array: Array, axis: int, filler: float = 0.0) -> Array:
        axis += array.ndim
        widths = [(0, 0)] * array.ndim
        widths[axis] = (0, number * size - array.shape[axis])
        filled = jnp.pad(array, widths, constant_values=filler)
        shape = (*array.shape[:axis], number, size, *array.shape[axis + 1 :])
        return jnp.moveaxis(filled.reshape(shape), axis, 0)

    # The last array is filled up with `NEVER`, as weights of slots that are not there.
    *others, last = rest or (None,)
    parts = [cut(emissions.annotations, -2), cut(emissions.may_end, -1, False)]
    parts += [cut(array, -1) for array in others]
    return tuple(parts) if last is None else (*parts, cut(last, -1, NEVER))
