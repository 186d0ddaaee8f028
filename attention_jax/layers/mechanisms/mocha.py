"""Monotonic chunkwise attention (MoChA): a softmax over the last slots before a monotonic stop.

  alignment[t, s] as in monotonic attention, from energies = score(query[t], keys[s]) + r
  u[t, s] = chunk_score(query[t], keys[s])
  weights[t, s] = sum_{k=s}^{s+w-1} alignment[t, k] exp(u[t, s]) / sum_{l=k-w+1}^{k} exp(u[t, l])

After training a query stops for good at the first slot whose energy is at least zero, and weights
are the softmax of u over the last w slots that were read. Without a window it is over all of them:
monotonic infinite lookback attention (MILk).
"""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.inner_score import inner_score
from attention_jax.layers.mechanism import MECHANISMS, MechanismParts
from attention_jax.layers.monotonic_attention import (
    MonotonicConfig,
    check_energy,
    monotonic_parts,
)
from attention_jax.layers.parameters import shared_names
from attention_jax.ops.attend import keep_memory
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.monotonic import chunk_attention
from attention_jax.ops.positions import in_order, slot_order
from attention_jax.types import Array, Memory, Params

PAPER = (
    "Chiu and Raffel (2018), Monotonic chunkwise attention, algorithm 1; Arivazhagan et al. "
    "(2019), Monotonic infinite lookback attention, without a window"
)
_KEYS = "chunk_keys"


@dataclasses.dataclass(frozen=True)
class Config(MonotonicConfig):
    """Monotonic chunkwise attention.

    Further fields are those of `layers.monotonic_attention.MonotonicConfig`. A bias of slots is
    added to the energies that stop, and masks are for both.

    Attributes:
      name: The mechanism.
      window: w, how many slots a chunk has (2 to 8 in the paper); None for all up to the stop.
      chunk_score: The mechanism whose score is u, with parameters of its own.
    """

    name: str = setting("mocha")
    window: int | None = setting(2, at_least=1)
    chunk_score: Any = setting({"name": "bahdanau"}, named=MECHANISMS.config)

    def __post_init__(self) -> None:
        """Rejects what is no score of slots."""
        super().__post_init__()
        check_energy(self.chunk_score, "chunk_score")


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds chunkwise attention for queries and keys of the given depths."""
    chunk = inner_score(config.chunk_score, query_dim, key_dim)
    names = {name: f"chunk_{name}" for name in chunk.parameters}

    def own(params: Params) -> Params:
        return {name: params[longer] for name, longer in names.items()}

    def weigh(
        params: Params, alignment: Array, mask: Array, query: Array, memory: Memory, places: Array
    ) -> Array:
        keys = memory.aux[_KEYS]
        chunks = dataclasses.replace(memory, keys=keys)
        energies = chunk.spec.score(own(params), query, chunks, {}, places)
        energies = in_order(energies, slot_order(memory))
        return chunk_attention(alignment, energies, mask, config.window)

    parts = monotonic_parts(config, query_dim, key_dim, lambda energies: energies >= 0.0, weigh)
    prepare = parts.spec.prepare

    def prepare_both(params: Params, memory: Memory, positions: Array) -> Memory:
        keys = chunk.spec.prepare(own(params), memory, positions).keys
        memory = prepare(params, memory, positions)
        aux = {**memory.aux, _KEYS: zero_padding(keys, memory.mask)}
        return dataclasses.replace(memory, aux=aux)

    of_chunk = {names[name]: parameter for name, parameter in chunk.parameters.items()}
    parameters = {**parts.parameters, **of_chunk}
    # Heads share a memory only where both scores prepare it without their queries' parameters.
    if any(
        part.spec.prepare is not keep_memory and not shared_names(part.parameters, "heads")
        for part in (parts, chunk)
    ):
        parameters = {
            name: dataclasses.replace(each, shared_by=frozenset())
            for name, each in parameters.items()
        }
    reads_length = chunk.traits.reads_length
    traits = parts.traits._replace(
        reads_length=parts.traits.reads_length or reads_length,
        is_online=parts.traits.is_online and not reads_length,
    )
    spec = dataclasses.replace(parts.spec, prepare=prepare_both)
    return parts._replace(spec=spec, parameters=parameters, traits=traits)
