"""Attention as score x normalizer x trackers, composed; the one place where the three meet.

A mechanism is an `AttentionSpec`. `make_memory` prepares a source once, `init_state` says what is
carried from query to query, and `attend` answers queries: one of them inside a recurrence, or
all at once. Which of the two it is never changes a number.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.ops import bands
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.normalizers import Normalizer, softmax_normalizer
from attention_jax.ops.positions import positions_of_slots
from attention_jax.ops.summation import for_sums
from attention_jax.ops.windows import (
    WindowFunction,
    gather_from_rows,
    gather_window,
    scatter_window,
    window_indices,
)
from attention_jax.types import AttentionOutput, Call, Memory, Params, State

ScoreFunction = Callable[[Params, Array, Memory, State, Array], Array]
Prepare = Callable[[Params, Memory, Array], Memory]
PrepareQuery = Callable[[Params, Array, Array], Array]
Average = Callable[[Params, Array, Memory, Array], Array]
Reweight = Callable[..., Array]
Fused = Callable[[Array, Memory, Array], Array]
_Steps = tuple[Array, Mapping[str, Array] | None, Array | None, Array | None]


class Tracker(NamedTuple):
    """Something that is carried from query to query; a value's first axes are `*B`.

    Attributes:
      init: (params, memory) -> the value before the first query.
      update: (params, value, query, output, memory) -> the value after a query was answered; the
        query is as the score has it, prepared, and the output's arrays have a query axis of one.
      observe: (params, value, state, observed, memory) -> the value that the next query finds,
        given what became known since the last one, such as the word that was written; None where
        nothing but queries and their answers matters.
    """

    init: Callable[[Params, Memory], Array]
    update: Callable[[Params, Array, Array, AttentionOutput, Memory], Array]
    observe: Callable[[Params, Array, State, Mapping[str, Array], Memory], Array] | None = None


def keep_memory(params: Params, memory: Memory, positions: Array) -> Memory:
    """Prepares nothing: keys and values are used as they come."""
    return memory


def keep_query(params: Params, query: Array, positions: Array) -> Array:
    """Prepares nothing: queries are used as they come."""
    return query


def average_values(params: Params, weights: Array, memory: Memory, positions: Array) -> Array:
    """Returns the sums of the values under weights `*B T S`: the contexts `*B T Dv`."""
    return jnp.matmul(weights.astype(memory.values.dtype), memory.values)


@dataclasses.dataclass(frozen=True)
class AttentionSpec:
    """How a mechanism attends; static under jit.

    Attributes:
      score: (params, query, memory, state, positions) -> scores `*B T S`. The positions are those
        of the queries, for all rows: `T`; inside windows, where each query has a memory of its
        own, `T 1`, beside queries `*B T 1 Dq`; inside bands `N Q`, beside queries `*B N Q Dq`.
        The normalizer and `average` are given the same.
      normalizer: From scores to weights.
      prepare: (params, memory, positions) -> memory, done once for a source, such as projecting
        its keys; the positions are those of the slots.
      prepare_query: (params, query, positions) -> query, done before anything else is; score,
        normalizer and trackers are given what it returns.
      average: (params, weights, memory, positions) -> context.
      reweight: (params, weights, call) -> what the values are averaged under, in place
        of the weights; None where that is the weights. The output's weights, and what trackers
        read, are those of the normalizer.
      fused: (query, memory, mask) -> context: a faster way to the same context that makes no
        weights, or None where there is none; `mask` is `*B T S`. Not taken in training where
        there is a `reweight`; beside one that acts outside it, too, there must be none.
      window: Places the window of a local mechanism, or None to attend everywhere.
      band: Which slots around its own position a query may read, where queries and slots are one
        sequence; None where there is no such limit.
      trackers: Named trackers of what is carried from query to query.
      reads: Names of the tracked values that score, normalizer or another tracker read.

    Raises:
      ValueError: If what is read is not tracked, if what is tracked is never read, or if a
        window or a band is combined with trackers or with one another.
    """

    score: ScoreFunction
    normalizer: Normalizer = softmax_normalizer
    prepare: Prepare = keep_memory
    prepare_query: PrepareQuery = keep_query
    average: Average = average_values
    reweight: Reweight | None = None
    fused: Fused | None = None
    window: WindowFunction | None = None
    band: bands.Band | None = None
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
        if (self.window is not None or self.band is not None) and tracked:
            raise ValueError(f"trackers: expected none beside a window, found {sorted(tracked)}")
        if self.window is not None and self.band is not None:
            raise ValueError("window: expected none beside a band, found one")

    @property
    def is_parallel(self) -> bool:
        """Whether queries do not depend on one another."""
        return not self.trackers

    @property
    def observes(self) -> bool:
        """Whether something is to be told between queries; see `observe`."""
        return any(tracker.observe is not None for _, tracker in self.trackers)


def make_memory(
    spec: AttentionSpec,
    params: Params,
    keys: Float[Array, "*#B S Dk"],
    values: Float[Array, "*#B S Dv"],
    mask: Bool[Array, "*#B S"],
    positions: Int[Array, "S"] | None = None,
    **aux: Any,
) -> Memory:
    """Prepares a source for attention, once.

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
    memory = Memory(zero_padding(keys, mask), zero_padding(values, mask), mask, aux)
    memory = spec.prepare(params, memory, positions)
    return dataclasses.replace(
        memory,
        keys=zero_padding(memory.keys, memory.mask),
        values=zero_padding(memory.values, memory.mask),
    )


def init_state(spec: AttentionSpec, params: Params, memory: Memory) -> State:
    """Returns what is carried into the first query; empty for a mechanism without trackers."""
    return {name: tracker.init(params, memory) for name, tracker in spec.trackers}


def observe(
    spec: AttentionSpec,
    params: Params,
    memory: Memory,
    state: State,
    observed: Mapping[str, Array],
    where: Bool[Array, "*B"] | None = None,
) -> State:
    """Tells the trackers what became known since the last query.

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

    def told(name: str, tracker: Tracker) -> Array:
        old = state[name]
        if tracker.observe is None:
            return old
        new = tracker.observe(params, old, state, observed, memory)
        if where is None:
            return new
        return jnp.where(jnp.expand_dims(where, range(where.ndim, new.ndim)), new, old)

    return {name: told(name, tracker) for name, tracker in spec.trackers}


def attend(
    spec: AttentionSpec,
    params: Params,
    query: Float[Array, "*B T Dq"],
    memory: Memory,
    state: State | None = None,
    *,
    observed: Mapping[str, Float[Array, "*#B T _"]] | None = None,
    mask: Bool[Array, "*#B #T S"] | None = None,
    bias: Float[Array, "*#B #T S"] | None = None,
    positions: Int[Array, "T"] | None = None,
    call: Call = Call(),
    is_fused: bool = False,
) -> tuple[AttentionOutput, State]:
    """Answers queries: scores the memory, normalises, and averages the values.

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
      is_fused: Whether the context is to come from the mechanism's fused path, where it has one
        that holds (`AttentionSpec`) and no bias is given. Weights and scores are as ever:
        computed apart from it, and not at all in a compiled function of which nothing depends on
        them.

    Returns:
      (output, state after the last query).

    Raises:
      ValueError: If there are several queries and what comes between them is not given, or if a
        mask or a bias is not of these queries and slots.
    """
    num_queries = query.shape[-2]
    state = init_state(spec, params, memory) if state is None else state
    positions = jnp.arange(num_queries) if positions is None else positions
    _check_rows(query, memory, mask=mask, bias=bias)
    query = spec.prepare_query(params, query, positions)
    if bias is not None:
        allowed = bias != -jnp.inf
        mask = allowed if mask is None else mask & allowed
    how = dict(call=call, is_fused=is_fused)
    if spec.is_parallel:
        return _answer(spec, params, query, memory, state, mask, bias, positions, **how), state
    told = observed if spec.observes else None
    steps = (query, told, mask, bias)
    if num_queries == 1:
        return _answer_next(spec, params, memory, state, steps, positions, **how)
    if spec.observes and told is None:
        raise ValueError("observed: expected what comes between several queries, found none")
    return _answer_in_turn(spec, params, memory, state, steps, positions, **how)


def _check_rows(query: Array, memory: Memory, **rows: Array | None) -> None:
    """Raises `ValueError` for what would give the output axes that queries and slots have not."""
    batch = jnp.broadcast_shapes(query.shape[:-2], memory.mask.shape[:-1])
    full = (*batch, query.shape[-2], memory.mask.shape[-1])
    for name, row in rows.items():
        if row is None:
            continue
        fits = zip(reversed(row.shape), reversed(full), strict=False)
        if row.ndim > len(full) or not all(size in (1, of) for size, of in fits):
            raise ValueError(f"{name}: expected a shape that fits {full}, found {row.shape}")


def _answer_next(
    spec: AttentionSpec,
    params: Params,
    memory: Memory,
    state: State,
    steps: _Steps,
    positions: Array,
    **how: Any,
) -> tuple[AttentionOutput, State]:
    """Answers a single query, with what the one before it left behind.

    Args:
      spec: The mechanism.
      params: Its parameters.
      memory: What is attended to.
      state: What the query finds.
      steps: (query, prepared; observed, mask, bias, as `attend` is given them).
      positions: Index of the query, `1`.
      **how: Mode and key, see `attend`.
    """
    query, told, mask, bias = steps
    if told is not None:
        latest = {name: jnp.squeeze(part, -2) for name, part in told.items()}
        state = observe(spec, params, memory, state, latest)
    output = _answer(spec, params, query, memory, state, mask, bias, positions, **how)
    state = {
        name: tracker.update(params, state[name], query, output, memory)
        for name, tracker in spec.trackers
    }
    return output, state


def _answer_in_turn(
    spec: AttentionSpec,
    params: Params,
    memory: Memory,
    state: State,
    steps: _Steps,
    positions: Array,
    *,
    call: Call,
    **how: Any,
) -> tuple[AttentionOutput, State]:
    """Answers several queries, each with what the one before it left behind.

    Args:
      spec: The mechanism.
      params: Its parameters.
      memory: What is attended to.
      state: What the first query finds.
      steps: (queries, prepared; observed, mask, bias, as `attend` is given them).
      positions: Index of every query.
      call: Mode, and the key from which those of the queries are derived.
      **how: See `attend`.
    """
    query = steps[0]
    num_queries, query_axis = query.shape[-2], query.ndim - 2
    batch = query.shape[:query_axis]
    state = {  # one source may be shared by several hypotheses
        name: jnp.broadcast_to(value, (*batch, *value.shape[query_axis:]))
        for name, value in state.items()
    }

    def one_query(state: State, step: Any) -> tuple[State, AttentionOutput]:
        parts, position, rng = step
        parts = jax.tree.map(lambda part: jnp.expand_dims(part, -2), parts)
        output, state = _answer_next(
            spec, params, memory, state, parts, position[None], call=call.with_key(rng), **how
        )
        return state, jax.tree.map(lambda part: jnp.squeeze(part, query_axis), output)

    def by_query(part: Array) -> Array:
        full = (*part.shape[:-2], num_queries, part.shape[-1])
        return jnp.moveaxis(jnp.broadcast_to(part, full), -2, 0)

    inputs = (jax.tree.map(by_query, steps), positions, call.split(num_queries))
    state, outputs = jax.lax.scan(one_query, state, inputs)
    return jax.tree.map(lambda part: jnp.moveaxis(part, 0, query_axis), outputs), state


def _answer(
    spec: AttentionSpec,
    params: Params,
    query: Array,
    memory: Memory,
    state: State,
    mask: Array | None,
    bias: Array | None,
    positions: Array,
    *,
    is_fused: bool,
    call: Call,
) -> AttentionOutput:
    if spec.window is not None:
        return _answer_in_window(spec, params, query, memory, mask, bias, positions, call)
    if spec.band is not None:
        return _answer_in_band(
            spec, params, query, memory, mask, bias, positions, call=call, is_fused=is_fused
        )
    scores = for_sums(spec.score(params, query, memory, state, positions))
    scores = scores if bias is None else scores + bias
    reach = memory.mask[..., None, :]
    reach = reach if mask is None else reach & mask
    allowed = jnp.broadcast_to(reach, scores.shape)
    weights, aux = spec.normalizer(
        params, scores, allowed, query, memory, state, positions=positions, call=call
    )
    is_reweighted = spec.reweight is not None
    if is_fused and spec.fused is not None and bias is None and not (is_reweighted and call.train):
        context = spec.fused(query, memory, reach)
    else:
        averaged = spec.reweight(params, weights, call) if is_reweighted else weights
        context = spec.average(params, averaged, memory, positions)
    return AttentionOutput(context, weights, scores, aux)


def _answer_in_window(
    spec: AttentionSpec,
    params: Params,
    query: Array,
    memory: Memory,
    mask: Array | None,
    bias: Array | None,
    positions: Array,
    call: Call,
) -> AttentionOutput:
    """Gives every query a small memory of its own, and attends to that."""
    size = memory.mask.shape[-1]
    window = spec.window(params, query, memory, positions)
    index = window_indices(memory, window)
    output = _answer(
        dataclasses.replace(spec, window=None),
        params,
        query[..., None, :],
        gather_window(memory, window),
        {},
        None if mask is None else gather_from_rows(mask, index)[..., None, :],
        None if bias is None else gather_from_rows(bias, index)[..., None, :],
        positions[:, None],
        is_fused=False,
        call=call,
    )
    return AttentionOutput(
        output.context[..., 0, :],
        scatter_window(output.weights[..., 0, :], index, size),
        scatter_window(output.scores[..., 0, :], index, size),
        {**output.aux, "center": window.center},
    )


def _answer_in_band(
    spec: AttentionSpec,
    params: Params,
    query: Array,
    memory: Memory,
    mask: Array | None,
    bias: Array | None,
    positions: Array,
    **how: Any,
) -> AttentionOutput:
    """Gives every block of queries a memory of its own, and attends to that within the band."""
    num_queries, num_slots = query.shape[-2], memory.mask.shape[-1]
    everywhere = dataclasses.replace(spec, band=None)
    if not bands.has_blocks(memory, num_queries):
        near = bands.within_band(spec.band, positions, positions_of_slots(memory))
        mask = near if mask is None else near & mask
        output = _answer(everywhere, params, query, memory, {}, mask, bias, positions, **how)
        return dataclasses.replace(output, scores=jnp.where(near, output.scores, 0.0))
    blocks = bands.in_blocks(spec.band, positions, num_slots)
    reach = bands.reach(spec.band, blocks)
    output = _answer(
        everywhere,
        params,
        bands.split_queries(query, blocks),
        bands.split_memory(memory, spec.band, blocks),
        {},
        reach if mask is None else reach & bands.rows_of_blocks(mask, blocks, num_queries),
        None if bias is None else bands.rows_of_blocks(bias, blocks, num_queries),
        blocks.positions,
        **how,
    )
    return bands.join(output, spec.band, blocks, num_queries, num_slots)
