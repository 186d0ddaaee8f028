"""Flat combination: one distribution over the slots of all sources.

  weights[t, (k, s)] = softmax over all k, s (score(query[t], keys_k[s]))
  context[t] = sum_k sum_s weights[t, (k, s)] (values_k[s] U_k)

The sources share what makes scores of queries, such as W_q and the vector of additive scores; each
has its own projection of keys, and of values into a common depth, U_k, where the score has none.

Deviations: without the paper's sentinel, a further slot for what no source tells.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Int

from attention_jax.configuration import setting
from attention_jax.layers.attention import OneSource
from attention_jax.layers.encoder import Encoded, Sources
from attention_jax.layers.mechanism import Mechanism
from attention_jax.layers.parameters import Parameter, shared_names
from attention_jax.layers.several_sources import (
    SOURCES,
    CombinationConfig,
    Depths,
    one_for_each,
    parameters_of,
    split_slots,
    under,
    with_alignment_head,
)
from attention_jax.ops.masks import zero_padding
from attention_jax.types import Array, AttentionOutput, Memory, Params, State

PAPER = "Libovický and Helcl (2017), section 3.2; Libovický, Helcl and Mareček (2018) for heads"
_SHARED = "shared"
_OVER_SLOTS = ("read", "head_weights")  # of what stands in `aux`


@dataclasses.dataclass(frozen=True)
class Config(CombinationConfig):
    """The flat combination.

    Attributes:
      name: The mechanism.
      score: The score of all slots, with its heads: one that carries nothing from query to query
        and does not ask where in its source a slot stands.
    """

    name: str = setting("flat")


def build(
    config: Config, query_dim: int, key_dim: int, sources: Depths, **sizes: Any
) -> "Flat":
    """Builds the combination.

    Raises:
      ValueError: If the score does not serve for slots of several sources.
    """
    asking = one_for_each(config, query_dim, sources, sizes)
    _check_score(config, asking)
    # Heads that project make contexts of any depth; any other score averages the values.
    depth = None if config.score.projects_heads else sources[0][1]
    return Flat(asking, sources, depth or asking[0][1].context_dim, depth is not None)


def _check_score(config: Config, asking: tuple[tuple[str, OneSource], ...]) -> None:
    first = asking[0][1]
    reason = None
    if first.carries:
        reason = f"which carries {' and '.join(first.carries)}"
    elif not (first.traits.is_alignment and config.score.reads_keys and config.score.normalizes):
        reason = "which is no score of queries and keys"
    elif first.parts.spec.pattern is not None or first.traits.reads_length:
        reason = "which asks where in its source a slot stands"
    if reason is not None:
        raise ValueError(
            "attention.score.name: expected a score for slots of several sources, found "
            f"{config.score.name!r}, {reason}"
        )
    shared = [_of_queries(mechanism) for _, mechanism in asking]
    if any(parameters != shared[0] for parameters in shared):
        depths = ", ".join(f"{name} {mechanism.context_dim}" for name, mechanism in asking)
        raise ValueError(
            "attention.score.name: expected one that projects the keys of each source, where "
            f"their depths differ ({depths}), found {config.score.name!r}"
        )


def _of_queries(mechanism: OneSource) -> dict[str, Parameter]:
    """Returns the parameters that the memory does not depend on, which the sources share."""
    parameters = mechanism.parameters
    own = shared_names(parameters, "heads")
    return {name: value for name, value in parameters.items() if name not in own}


@dataclasses.dataclass(frozen=True)
class Flat(Mechanism):
    """The flat combination as pure functions.

    Attributes:
      asking: (name, the mechanism for its depth) of each source.
      sources: (name, depth of its annotations) of each.
      context_dim: Depth of the contexts.
      projects_values: Whether values are projected into that depth.
      alignment_head: The head that stands for all; None for their mean.
    """

    asking: tuple[tuple[str, OneSource], ...]
    sources: Depths
    context_dim: int
    projects_values: bool
    alignment_head: int | None = dataclasses.field(default=None, kw_only=True)

    @property
    def num_heads(self) -> int:  # type: ignore[override]
        """How many heads there are."""
        return self.asking[0][1].num_heads

    @property
    def parameters(self) -> dict[str, Any]:
        """What the sources share, and what each has of its own under its name."""
        own: dict[str, Any] = {}
        for (name, mechanism), (_, depth) in zip(self.asking, self.sources, strict=True):
            parameters = mechanism.parameters
            of_memory = sorted(shared_names(parameters, "heads"))
            own[name] = {key: parameters[key] for key in of_memory}
            if self.projects_values:
                kernel = Parameter.of("kernel", value=depth, context=self.context_dim)
                own[name]["value_kernel"] = kernel
        return {_SHARED: _of_queries(self.asking[0][1]), SOURCES: own}

    def make_memory(
        self, params: Params, sources: Sources, positions: Int[Array, "S"] | None = None
    ) -> Memory:
        """Prepares each source, and puts their slots into one row."""
        return self.joined({
            name: self.memory_of(params, name, sources[name], positions) for name, _ in self.asking
        })  # fmt: skip

    def memory_of(
        self, params: Params, name: str, encoded: Encoded, positions: Int[Array, "S"] | None = None
    ) -> Memory:
        """Prepares one source, for `joined`."""
        known = self.known(params, name)
        slots = _slots(encoded, known.get("value_kernel"))
        return dict(self.asking)[name].make_memory(known, {name: slots}, positions)

    def joined(self, memories: Mapping[str, Memory]) -> Memory:
        """Puts the slots of all sources into one row; their batch axes may be of one."""
        ordered = [memories[name] for name, _ in self.asking]
        # Slots stand on the last axis of a mask, and on that axis of all other arrays.
        axis = ordered[0].mask.ndim - 1
        batch = jnp.broadcast_shapes(*(memory.mask.shape[:axis] for memory in ordered))

        def beside(*parts: Array) -> Array:
            whole = [jnp.broadcast_to(part, (*batch, *part.shape[axis:])) for part in parts]
            return jnp.concatenate(whole, axis)

        joint = jax.tree.map(beside, *ordered)
        # These tell the sources apart.
        masks = {name: memories[name].mask for name, _ in self.asking}
        return dataclasses.replace(joint, aux={"joint": joint.aux, "masks": masks})

    def known(self, params: Params, name: str) -> Params:
        """Returns all that scores the slots of a source: what is shared, and its own."""
        return {**params.get(_SHARED, {}), **parameters_of(params, name)}

    def attend(
        self,
        params: Params,
        query: Array,
        memory: Memory,
        state: State | None = None,
        **how: Any,
    ) -> tuple[AttentionOutput, State]:
        """Answers queries; a mask or a bias has the slots of all sources side by side, or one."""
        name, mechanism = self.asking[0]
        mechanism = with_alignment_head(mechanism, self.alignment_head)
        slots = dataclasses.replace(memory, aux=memory.aux["joint"])
        output, state = mechanism.attend(self.known(params, name), query, slots, state, **how)
        sizes = [memory.aux["masks"][name].shape[-1] for name, _ in self.asking]
        return _first_of(output, sizes, [name for name, _ in self.asking]), state


def _slots(encoded: Encoded, kernel: Array | None) -> Encoded:
    """Returns a source with projected values, without what the sources need not all have."""
    values = encoded.averaged
    if kernel is not None:
        values = zero_padding(values, encoded.mask) @ kernel  # NaN must reach no gradient
    return Encoded(encoded.annotations, encoded.mask, values=values)


def _first_of(output: AttentionOutput, sizes: list[int], names: list[str]) -> AttentionOutput:
    """Returns the part of the first source, with those of the others in `aux`."""
    over_slots = {key: output.aux[key] for key in _OVER_SLOTS if key in output.aux}
    over_slots |= {"weights": output.weights, "scores": output.scores}
    parts = {key: split_slots(array, sizes) for key, array in over_slots.items()}
    of_each = [
        AttentionOutput(
            output.context, weights, scores,
            {key: parts[key][number] for key in _OVER_SLOTS if key in parts},
        )
        for number, (weights, scores) in enumerate(
            zip(parts["weights"], parts["scores"], strict=True)
        )
    ]  # fmt: skip
    aux = {**output.aux, **of_each[0].aux}
    for name, other in zip(names[1:], of_each[1:], strict=True):
        aux |= under(name, other)
    return dataclasses.replace(of_each[0], aux=aux)
