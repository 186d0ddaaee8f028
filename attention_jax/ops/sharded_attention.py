"""Sequence parallelism: attention over a source whose positions are split over devices.

Every device scores its own positions. What the devices exchange is small, whatever the length of
the source: the largest score of every query, the sums of exponentials, and the sums of weighted
values.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Float

from attention_jax.ops.attend import AttentionSpec, attend
from attention_jax.ops.normalizers import LOWEST, Normalizer, softmax_normalizer
from attention_jax.ops.products import average_values
from attention_jax.ops.summation import upcast
from attention_jax.types import AttentionOutput, Memory, Params, State

_PROBED_SLOTS = 64


def sharded_softmax(
    scores: Float[Array, "*B S"], mask: Bool[Array, "*#B S"], axis: str
) -> Float[Array, "*B S"]:
    """Sharded softmax: normalises over the positions of all devices along a mesh axis.

    weights[s] = exp(scores[s] - m) / sum_r exp(scores[r] - m),  m = max_r scores[r]

    over the slots r of every device that the mask allows. For functions that run on each device
    with its slots, as under `shard_map`.

    Args:
      scores: Of this device's slots; any floats, also infinite or NaN where masked.
      mask: True where a slot may be attended to. A row that is masked on every device gets zeros.
      axis: The mesh axis over which slots are split.

    Returns:
      The weights of this device's slots, in float32 or float64.
    """
    safe = jnp.where(mask, upcast(scores), LOWEST)
    peak = lax.pmax(lax.stop_gradient(safe.max(axis=-1, keepdims=True, initial=LOWEST)), axis)
    exponentials = jnp.where(mask, jnp.exp(safe - peak), 0.0)
    # One number for each query crosses devices, however many slots there are.
    total = lax.psum(exponentials.sum(axis=-1, keepdims=True), axis)
    return exponentials / jnp.where(total > 0.0, total, 1.0)


def attend_sharded(
    spec: AttentionSpec,
    params: Params,
    query: Float[Array, "*#B T Dq"],
    memory: Memory,
    mesh: Mesh | AbstractMesh,
    *,
    axis: str = "sequence",
    mask: Bool[Array, "*#B #T S"] | None = None,
    bias: Float[Array, "*#B #T S"] | None = None,
) -> AttentionOutput:
    """Sequence-parallel attention: `attend`, with the memory's slots split over a mesh axis.

    context[t] = sum over devices of sum_s weights[t, s] values[s]

    Args:
      spec: A mechanism with the softmax over all slots, whose score of a slot depends on the
        query and on that slot's key, such as additive and dot scores.
      params: Its parameters.
      query: Decoder states that ask, on every device along the axis.
      memory: What `make_memory` returned.
      mesh: The devices, with automatic or explicit axes. Those other than `axis` are left to the
        compiler, or as they are.
      axis: The mesh axis over which slots are split; it must divide their number.
      mask: Further restricts the memory's own mask.
      bias: Added to the scores.

    Returns:
      The output, its context on every device along the axis; weights and scores stay split.

    Raises:
      ValueError: If the mechanism is another one, such as one whose scores depend on where a slot
        stands, or slots cannot be split evenly.
    """
    slots, shards = memory.mask.shape[-1], mesh.shape[axis]
    if slots % shards:
        raise ValueError(
            f"memory: expected a multiple of {shards} slots, one part for each device along "
            f"{axis!r}, found {slots}"
        )
    _check(spec, params, query, memory)
    spec = dataclasses.replace(spec, normalizer=_normalizer(axis))

    def attend_to_own_slots(params: Params, query: Array, *rest: Any) -> AttentionOutput:
        memory, mask, bias = rest
        output, _ = attend(spec, params, query, memory, mask=mask, bias=bias)
        # Each device has averaged its own values under its own share of the weights.
        summed = lax.psum((output.context, output.aux), axis)
        return dataclasses.replace(output, context=summed[0], aux=summed[1])

    def split(place: int, array: Array) -> PartitionSpec:
        names = [None] * array.ndim
        names[place] = axis
        return PartitionSpec(*names)

    copy = PartitionSpec()
    arrays = (params, query, Memory(memory.keys, memory.values, memory.mask), mask, bias)
    splits = (  # of slots: the last axis but one of keys and values, the last of all others
        jax.tree.map(lambda _: copy, params),
        copy,
        Memory(split(-2, memory.keys), split(-2, memory.values), split(-1, memory.mask)),
        None if mask is None else split(-1, mask),
        None if bias is None else split(-1, bias),
    )
    # An automatic axis is laid out by the compiler, an explicit one by whoever calls.
    if dict(zip(mesh.axis_names, mesh.axis_types, strict=True))[axis] == AxisType.Explicit:
        arrays = jax.tree.map(functools.partial(_lay_out, mesh, axis), arrays, splits)
    attend_split = jax.shard_map(
        attend_to_own_slots,
        mesh=mesh,
        in_specs=splits,
        out_specs=AttentionOutput(copy, *[_last(query, axis)] * 2, {"reach": copy}),
        axis_names={axis},
        check_vma=False,
    )
    # Outside of `jit`, a mesh could have no axis but this one.
    return jax.jit(attend_split)(*arrays)


def _last(query: Array, axis: str) -> PartitionSpec:
    return PartitionSpec(*[None] * (query.ndim - 1), axis)


def _lay_out(mesh: Mesh | AbstractMesh, axis: str, array: Array, split: PartitionSpec) -> Array:
    """Reshards an array along an explicit axis, which accepts no array that lies otherwise.

    Along the mesh's other axes it stays as it is.
    """

    def others(names: Any) -> tuple[str, ...]:
        found = names if isinstance(names, tuple) else (names,)
        return tuple(name for name in found if name not in (None, axis))

    # A spec may leave out axes at its end, which are not split.
    here = [*jax.typeof(array).sharding.spec, *[None] * array.ndim][: array.ndim]
    there = [*split, *[None] * array.ndim][: array.ndim]
    spec = [
        others(names) + ((axis,) if name == axis else ()) or None
        for names, name in zip(here, there, strict=True)
    ]
    return jax.sharding.reshard(array, NamedSharding(mesh, PartitionSpec(*spec)))


def _normalizer(axis: str) -> Normalizer:
    def normalizer(
        params: Params,
        scores: Array,
        mask: Array,
        query: Array,
        memory: Memory,
        state: State,
        **_: Any,
    ) -> tuple[Array, Mapping[str, Array]]:
        return sharded_softmax(scores, mask, axis), {}

    return normalizer


def _check(spec: AttentionSpec, params: Params, query: Array, memory: Memory) -> None:
    is_plain = spec.normalizer is softmax_normalizer and spec.reweight is None and not spec.dropout
    has_more = set(memory.aux) - {"positions"}  # which nothing that is taken here reads
    if not is_plain or spec.pattern or spec.trackers or has_more:
        raise ValueError(
            "spec: expected a softmax over all slots, without window, trackers and aux arrays"
        )
    try:
        reads_places = _reads_places(spec, params, query, memory)
    except NameError:  # as JAX calls an axis that is not there
        raise ValueError(
            "spec: expected a score of query and key alone, found one that asks which head it is of"
        ) from None
    if spec.average is not average_values or reads_places:
        raise ValueError(
            "spec: expected a score of query and key alone, found one that depends on where a slot "
            "stands; a device knows its own slots' places only from the first of them"
        )


def _reads_places(spec: AttentionSpec, params: Params, query: Array, memory: Memory) -> bool:
    """Tries whether slots with equal keys get different scores, by their places."""
    rng = np.random.default_rng(0)

    def draw(*shape: int) -> Array:
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    with jax.ensure_compile_time_eval():  # the arrays themselves are unknown under `jit`
        tried = jax.tree.map(lambda leaf: draw(*leaf.shape), params)
        # One key, repeated: a score of query and key alone cannot tell these slots apart.
        key, value = draw(1, memory.keys.shape[-1]), draw(1, memory.values.shape[-1])
        slots = Memory(
            jnp.repeat(key, _PROBED_SLOTS, axis=0),
            jnp.repeat(value, _PROBED_SLOTS, axis=0),
            jnp.ones(_PROBED_SLOTS, bool),
        )
        positions = jnp.arange(2)
        asking = spec.prepare_query(tried, draw(2, query.shape[-1]), positions)
        scores = spec.score(tried, asking, slots, {}, positions)
        scale = jnp.abs(jnp.where(jnp.isfinite(scores), scores, 0.0)).max()
        return not jnp.all(jnp.ptp(scores, axis=-1) <= 1e-4 * scale)
