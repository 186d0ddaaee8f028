"""Attention as score x normalizer x trackers, composed; cross-attention and self-attention alike.

A mechanism is an `AttentionSpec`. `make_memory` prepares a source once, `init_state` says what is
carried from query to query, and `attend` answers queries: one of them inside a recurrence, or
all at once. Which of the two it is never changes a number.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Num

from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.fused_dot import fused_dot_attention
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.normalizers import Normalizer, softmax_normalizer
from attention_jax.ops.part_calls import call_normalizer, call_part, check_scores
from attention_jax.ops.pattern import AttentionPattern, Queries
from attention_jax.ops.products import average_values
from attention_jax.ops.summation import upcast
from attention_jax.types import AttentionOutput, Call, Memory, Params, State

ScoreFunction = Callable[[Params, Array, Memory, State, Array], Array]
Prepare = Callable[[Params, Memory, Array], Memory]
PrepareQuery = Callable[[Params, Array, Array], Array]
Average = Callable[[Params, Array, Memory, Array], Array]
Reweight = Callable[[Params, Array, Call], Array]

# Faster ways to the contexts that `_answer` arrives at, tried in this order: functions (spec,
# params, queries, memory) -> contexts, or None where they do not hold.
IMPLEMENTATIONS = (fused_dot_attention,)


class Tracker(NamedTuple):
    """Tracker: a value carried from query to query, such as coverage; its first axes are `*B`.

    Attributes:
      init: (params, memory) -> the value before the first query.
      update: (params, value, query, output, memory) -> the value after a query was answered; the
        query is as the score has it, prepared, and the output's arrays have a query axis of one.
      observe: (params, value, state, observed, memory) -> the value that the next query finds,
        given what became known since the last one, such as the word that was written; None where
        nothing but queries and their answers matters.
      observes: Names of what it reads of `observed`.
    """

    init: Callable[[Params, Memory], Array]
    update: Callable[[Params, Array, Array, AttentionOutput, Memory], Array]
    observe: Callable[[Params, Array, State, Mapping[str, Array], Memory], Array] | None = None
    observes: tuple[str, ...] = ()


def keep_memory(params: Params, memory: Memory, positions: Array) -> Memory:
    """Prepares nothing: keys and values are used as they come."""
    return memory


def keep_query(params: Params, query: Array, positions: Array) -> Array:
    """Prepares nothing: queries are used as they come."""
    return query


@dataclasses.dataclass(frozen=True)
class AttentionSpec:
    """Attention spec: how a mechanism attends, as pure functions; static under jit.

    Attributes:
      score: (params, query, memory, state, positions) -> scores `*B T S`. The positions are those
        of the queries, for all rows: `T`; inside windows, where each query has a memory of its
        own, `T 1`, beside queries `*B T 1 Dq`; inside bands `N Q`, beside queries `*B N Q Dq`.
        The normalizer and `average` are given the same.
      normalizer: From scores to weights; its `aux["read"]` is what the values are averaged under
        where that is not the weights, such as a sample of them.
      prepare: (params, memory, positions) -> memory, done once for a source, such as projecting
        its keys; the positions are those of the slots.
      prepare_query: (params, query, positions) -> query, done before anything else is; score,
        normalizer and trackers are given what it returns.
      average: (params, weights, memory, positions) -> context.
      reweight: (params, weights, call) -> what the values are averaged under, in place of the
        weights; None where that is the normalizer's. The output's weights, and what trackers read,
        are those of the normalizer.
      dropout: Share of the weights that is dropped in training before the average, without
        normalising again (attention dropout).
      pattern: Which slots a query may read; None for all.
      trackers: Named trackers of what is carried from query to query.
      reads: Names of the tracked values that score, normalizer or another tracker read.

    Raises:
      ValueError: If what is read is not tracked, if what is tracked is never read, or if a
        pattern is combined with trackers.
    """

    score: ScoreFunction
    normalizer: Normalizer = softmax_normalizer
    prepare: Prepare = keep_memory
    prepare_query: PrepareQuery = keep_query
    average: Average = average_values
    reweight: Reweight | None = None
    dropout: float = 0.0
    pattern: AttentionPattern | None = None
    trackers: tuple[tuple[str, Tracker], ...] = ()
    reads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Rejects a spec whose trackers and readers do not fit."""
        tracked = {name for name, _ in self.trackers}
        missing, unused = set(self.reads) - tracked, tracked - set(self.reads)
        if missing:
            raise ValueError(f"reads: expected only tracked values, found {sorted(missing)}")
        if unused:
            raise ValueError(f"trackers: expected only what is read, found {sorted(unused)}")
        if self.pattern is not None and tracked:
            raise ValueError(f"trackers: expected none beside a pattern, found {sorted(tracked)}")

    @property
    def is_parallel(self) -> bool:
        """Whether queries do not depend on one another."""
        return not self.trackers

    @property
    def is_causal(self) -> bool:
        """Whether no query reads a slot after its own position, whatever the mask."""
        return self.pattern is not None and self.pattern.is_causal

    @property
    def observes(self) -> frozenset[str]:
        """Names of what `observe` has to be given between queries, such as the written word."""
        return frozenset(name for _, tracker in self.trackers for name in tracker.observes)


def make_memory(
    spec: AttentionSpec,
    params: Params,
    keys: Float[Array, "*#B S Dk"],
    values: Float[Array, "*#B S Dv"],
    mask: Bool[Array, "*#B S"],
    positions: Int[Array, "S"] | None = None,
    **aux: Any,
) -> Memory:
    """Builds the memory: prepares a source for attention, once for all queries.

    Args:
      spec: The mechanism.
      params: Its parameters.
      keys: What queries are compared with.
      values: What is averaged.
      mask: True where a slot may be attended to.
      positions: Index of every slot in its sequence, in any order, each index once; 0 .. S-1 if
        not given.
      **aux: Arrays that the mechanism needs beside these.

    Returns:
      A memory with projected keys and with zeros at padding, whatever stood there.
    """
    if positions is None:
        positions = jnp.arange(keys.shape[-2])
    else:  # beside the mask, with its axes, so that a memory's arrays can be mapped over alike
        aux = {**aux, "positions": jnp.broadcast_to(positions, mask.shape)}
    # Zeroed before the projection, whose gradient would multiply a NaN at padding by zero, and once
    # more after it, since a bias makes padding nonzero again.
    memory = Memory(zero_padding(keys, mask), zero_padding(values, mask), mask, aux)
    memory = call_part(spec.prepare, params, memory, positions)
    return dataclasses.replace(
        memory,
        keys=zero_padding(memory.keys, memory.mask),
        values=zero_padding(memory.values, memory.mask),
    )


def init_state(spec: AttentionSpec, params: Params, memory: Memory) -> State:
    """Returns what is carried into the first query; empty for a mechanism without trackers."""
    return {name: call_part(tracker.init, params, memory) for name, tracker in spec.trackers}


def observe(
    spec: AttentionSpec,
    params: Params,
    memory: Memory,
    state: State,
    observed: Mapping[str, Array],
    where: Bool[Array, "*B"] | None = None,
) -> State:
    """Tells the trackers what became known since the last query, such as the word written.

    Args:
      spec: The mechanism.
      params: Its parameters.
      memory: What `make_memory` returned.
      state: What that query left behind.
      observed: Named arrays `*B ...`.
      where: True where there was something to observe; elsewhere the state stays as it is.

    Returns:
      What the next query finds.
    """

    def updated(name: str, tracker: Tracker) -> Array:
        old = state[name]
        if tracker.observe is None:
            return old
        new = call_part(tracker.observe, params, old, state, observed, memory)
        if where is None:
            return new
        # `where` is `*B`; the tracked value may have slots and channels behind these axes.
        return jnp.where(jnp.expand_dims(where, range(where.ndim, new.ndim)), new, old)

    return {name: updated(name, tracker) for name, tracker in spec.trackers}


def attend(
    spec: AttentionSpec,
    params: Params,
    query: Float[Array, "*B T Dq"],
    memory: Memory,
    state: State | None = None,
    *,
    observed: Mapping[str, Num[Array, "*#B T _"]] | None = None,
    mask: Bool[Array, "*#B #T S"] | None = None,
    bias: Float[Array, "*#B #T S"] | None = None,
    positions: Int[Array, "T"] | None = None,
    call: Call = Call(),
    is_fused: bool = False,
) -> tuple[AttentionOutput, State]:
    """Attention: scores the memory for each query, normalises, and averages the values.

    context[t] = sum_s reweight(weights)[t, s] values[s]
    weights[t] = normalizer(score(query[t], keys) + bias[t])

    A mechanism without trackers answers all queries at once, any other one after the other.

    Args:
      spec: The mechanism.
      params: Its parameters.
      query: Decoder states that ask.
      memory: What `make_memory` returned; its batch axes broadcast against the query's.
      state: What was carried from earlier queries, or None before the first.
      observed: What became known before each query and since the one before it, for mechanisms
        that observe; a single query needs none after a call of `observe`.
      mask: Further restricts the memory's own mask, such as to the past.
      bias: Added to the scores; minus infinity forbids a slot, as the mask does.
      positions: Index of every query in its sequence, consecutive; 0 .. T-1 if not given.
      call: Mode and key; of several queries answered one after the other, each has a key derived
        from it.
      is_fused: Whether contexts are to come from one of the faster `IMPLEMENTATIONS`, where one
        holds. Weights and scores stay the same: they are computed apart from the contexts, and
        under jit only where something depends on them.

    Returns:
      (output, state after the last query); `aux["reach"]` counts the slots that each query may
      read, `*B T`, and `aux["read"]` is what the values were averaged under where that is not the
      weights, `*B T S`.

    Raises:
      ValueError: If `observed` is missing for several queries, or if a mask or a bias does not have
        the shape of these queries and slots.
    """
    num_queries = query.shape[-2]
    state = init_state(spec, params, memory) if state is None else state
    positions = jnp.arange(num_queries) if positions is None else positions
    _check_rows(query, memory, mask=mask, bias=bias)
    query = call_part(spec.prepare_query, params, query, positions)
    if bias is not None:
        # A forbidden slot is masked as well, so that normalizers and `reach` know of it.
        allowed = bias != -jnp.inf
        mask = allowed if mask is None else mask & allowed
    queries = Queries(query, positions, mask, bias, call, is_fused)
    if spec.is_parallel:
        return _answer(spec, params, queries, memory, state), state
    observed = observed if spec.observes else None
    if num_queries == 1:
        return _answer_next(spec, params, queries, memory, state, observed)
    if spec.observes and observed is None:
        raise ValueError("observed: expected what comes between several queries, found none")
    return _answer_in_turn(spec, params, queries, memory, state, observed)


def _check_rows(query: Array, memory: Memory, **rows: Array | None) -> None:
    """Raises `ValueError` for what would give the output axes that queries and slots have not."""
    batch = jnp.broadcast_shapes(query.shape[:-2], memory.mask.shape[:-1])
    full = (*batch, query.shape[-2], memory.mask.shape[-1])
    for name, row in rows.items():
        if row is None:
            continue
        # From the last axis backwards, as broadcasting compares them.
        fits = zip(reversed(row.shape), reversed(full), strict=False)
        if row.ndim > len(full) or not all(size in (1, of) for size, of in fits):
            raise ValueError(f"{name}: expected a shape that fits {full}, found {row.shape}")


def _answer_next(
    spec: AttentionSpec,
    params: Params,
    query: Queries,
    memory: Memory,
    state: State,
    observed: Mapping[str, Array] | None,
) -> tuple[AttentionOutput, State]:
    """Answers a single query, with what the one before it left behind and what became known."""
    if observed is not None:
        latest = {name: jnp.squeeze(part, -2) for name, part in observed.items()}  # *B 1 D -> *B D
        state = observe(spec, params, memory, state, latest)
    output = _answer(spec, params, query, memory, state)
    state = {
        # Each tracker updates its own value: their order does not matter.
        name: call_part(tracker.update, params, state[name], query.vectors, output, memory)
        for name, tracker in spec.trackers
    }
    return output, state


def _answer_in_turn(
    spec: AttentionSpec,
    params: Params,
    queries: Queries,
    memory: Memory,
    state: State,
    observed: Mapping[str, Array] | None,
) -> tuple[AttentionOutput, State]:
    """Answers several queries in a scan, each with what the one before it left behind."""
    num_queries, query_axis = queries.vectors.shape[-2], queries.vectors.ndim - 2
    batch = queries.vectors.shape[:query_axis]
    state = {  # one source may be shared by several hypotheses
        name: jnp.broadcast_to(value, (*batch, *value.shape[query_axis:]))
        for name, value in state.items()
    }

    def one_query(state: State, step: Any) -> tuple[State, AttentionOutput]:
        # The scan has taken the query axis away; it is put back with a size of one.
        parts, position, rng = step
        (vectors, mask, bias), known = jax.tree.map(lambda part: jnp.expand_dims(part, -2), parts)
        query = dataclasses.replace(
            queries, vectors=vectors, mask=mask, bias=bias, positions=position[None],
            call=queries.call.at_step(rng),
        )  # fmt: skip
        output, state = _answer_next(spec, params, query, memory, state, known)
        # Counted from the front: `reach` is `*B 1`, with the query axis last.
        return state, jax.tree.map(lambda part: jnp.squeeze(part, query_axis), output)

    def by_query(part: Array) -> Array:
        # *B #T D -> T *B D: the scan runs over the leading axis.
        full = (*part.shape[:-2], num_queries, part.shape[-1])
        return jnp.moveaxis(jnp.broadcast_to(part, full), -2, 0)

    parts = jax.tree.map(by_query, ((queries.vectors, queries.mask, queries.bias), observed))
    inputs = (parts, queries.positions, queries.call.split(num_queries))
    state, outputs = jax.lax.scan(one_query, state, inputs)
    return jax.tree.map(lambda part: jnp.moveaxis(part, 0, query_axis), outputs), state


def _answer(
    spec: AttentionSpec,
    params: Params,
    queries: Queries,
    memory: Memory,
    state: State | None = None,
) -> AttentionOutput:
    """Answers queries that do not depend on one another, within the mechanism's pattern."""
    if spec.pattern is not None:
        # The pattern cuts out what a query may read, and calls this function again for each cut.
        everywhere = dataclasses.replace(spec, pattern=None)
        return spec.pattern.answer(_answer, everywhere, params, queries, memory)
    query, positions, call = queries.vectors, queries.positions, queries.call
    state = {} if state is None else state
    # In float32 from here on: in bfloat16, scores that are close would be equal.
    scores = upcast(call_part(spec.score, params, query, memory, state, positions))
    check_scores(spec.score, scores, (query.shape[-2], memory.mask.shape[-1]))
    scores = queries.added_to(scores)
    allowed = jnp.broadcast_to(queries.within(memory), scores.shape)
    weights, aux = call_normalizer(
        spec.normalizer, scores,
        params, scores, allowed, query, memory, state, positions=positions, call=call,
    )  # fmt: skip
    aux = {**aux, "reach": allowed.sum(-1)}
    # Where one holds, the weights above cost nothing under jit unless somebody reads them.
    for implementation in IMPLEMENTATIONS:
        context = implementation(spec, params, queries, memory)
        if context is not None:
            return AttentionOutput(context, weights, scores, aux)
    read = aux.get("read", weights)
    read = read if spec.reweight is None else spec.reweight(params, read, call)
    read = scale(read, dropout_factors(call, spec.dropout, read.shape, read.dtype))
    if read is not weights:
        aux = {**aux, "read": read}
    context = spec.average(params, read, memory, positions)
    return AttentionOutput(context, weights, scores, aux)
