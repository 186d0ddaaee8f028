"""Attention to several sources: what its combinations share, whatever they make of the contexts.

A combination is a mechanism whose `score` asks each source, with parameters of its own, and which
makes one context of what they answer. A file in `layers/mechanisms` holds it, as any mechanism.

Weights and scores of a combination are over the slots of the first source, so that all that reads
an alignment reads that one. What each other source NAME has answered stands in `aux`, under
`NAME/weights`, `NAME/scores` and `NAME/KEY` for its own `aux[KEY]`.
"""

import abc
import dataclasses
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import jax.numpy as jnp
from jaxtyping import Bool, Int

from attention_jax.configuration import setting
from attention_jax.layers.attention import OneSource, build_mechanism
from attention_jax.layers.encoder import Sources
from attention_jax.layers.mechanism import MECHANISMS, Mechanism, MechanismConfig, Traits
from attention_jax.types import Array, AttentionOutput, Call, Memory, Params, Slots, State

SOURCES = "sources"  # the group of parameters of each, so that any source may have any name
Depths = tuple[tuple[str, int], ...]
Ask = Callable[[str, Array], AttentionOutput]
M = TypeVar("M", bound=Mechanism)


@dataclasses.dataclass(frozen=True)
class CombinationConfig(MechanismConfig):
    """Attention to several sources: what the configs of its combinations share.

    Attributes:
      score: The mechanism that asks each of them. Where encoder or decoder attend to themselves and
        name no mechanism for that, it is this one.
    """

    score: Any = setting({"name": "bahdanau"}, named=MECHANISMS.config)

    def __post_init__(self) -> None:
        """Rejects a combination of combinations."""
        check_asks_one("score", self.score)

    @property
    def needs(self) -> tuple[str, ...]:  # type: ignore[override]
        """All sources, and what asking one of them needs."""
        return "sources", *self.score.needs

    @property
    def reads_keys(self) -> bool:  # type: ignore[override]
        """Whether each source is asked by comparing queries with keys."""
        return self.score.reads_keys

    @property
    def of_one(self) -> MechanismConfig:
        """What a single sequence is asked by."""
        return self.score

    @property
    def refinements(self) -> Mapping[str, Any]:
        """Those of the heads that ask a source."""
        return getattr(self.score, "refinements", {})

    def without_refinements(self, names: Collection[str]) -> "CombinationConfig":
        """Returns the combination over heads without some of their refinements."""
        return dataclasses.replace(self, score=self.score.without_refinements(names))


def check_asks_one(field: str, config: MechanismConfig) -> None:
    """Raises `ValueError`, naming the field, for a mechanism that asks several sources itself."""
    if "sources" in config.needs:
        raise ValueError(f"{field}.name: expected attention to one source, found {config.name!r}")


def one_for_each(
    config: CombinationConfig, query_dim: int, sources: Depths, sizes: Mapping[str, Any]
) -> tuple[tuple[str, OneSource], ...]:
    """Builds the mechanisms that ask the sources, for their depths.

    Args:
      config: What combines them.
      query_dim: Depth of the queries.
      sources: (name, depth of its annotations) of each.
      sizes: What else the model tells of itself.

    Raises:
      ValueError: If there is one source only, or one cannot be asked so.
    """
    if len(sources) < 2:
        names = ", ".join(name for name, _ in sources)
        raise ValueError(
            f"attention.name: expected several sources for {config.name!r}, found {names} alone; "
            f"{config.of_one.name!r} attends to one"
        )
    told = {name: size for name, size in sizes.items() if name != "value_dim"}
    built = tuple(
        (name, build_mechanism(config.score, query_dim, depth, depth, **told))
        for name, depth in sources
    )
    for _, mechanism in built:
        if mechanism.provides:
            raise ValueError(
                "attention.score.name: expected attention to several sources that needs no "
                f"objective to teach it, found {config.score.name!r}"
            )
    return built


def with_alignment_head(mechanism: M, head: int | None) -> M:
    """Returns the mechanism, one head of which stands for all if it is given."""
    return mechanism if head is None else dataclasses.replace(mechanism, alignment_head=head)


def parameters_of(params: Params, name: str) -> Params:
    """Returns a source's own parameters; a group without any was not declared."""
    return params.get(SOURCES, {}).get(name, {})


def under(name: str, output: AttentionOutput) -> dict[str, Array]:
    """Returns what a further source has answered, by the names that it has in `aux`."""
    found = {"weights": output.weights, "scores": output.scores, **output.aux}
    return {f"{name}/{key}": value for key, value in found.items()}


def of_sources(
    attention: AttentionOutput, slots: Mapping[str, Slots]
) -> dict[str, Slots | Array]:
    """Returns what a model tells of its sources: `slots`, which attention is over, of the first.

    Those of each other source NAME are `slots/NAME`, and its weights, if it has any of its own,
    `attention/NAME`.
    """
    (_, first), *others = slots.items()
    told: dict[str, Slots | Array] = {"slots": first}
    for name, of_source in others:
        told[f"slots/{name}"] = of_source
        if f"{name}/weights" in attention.aux:
            told[f"attention/{name}"] = attention.aux[f"{name}/weights"]
    return told


def split_slots(array: Array | None, sizes: Sequence[int]) -> list[Array | None]:
    """Splits an array over the slots of all sources side by side, `... S`, into one for each.

    One that is the same for all slots, `... 1`, is for all sources.
    """
    if array is None or array.shape[-1] == 1:
        return [array] * len(sizes)
    ends = [sum(sizes[: number + 1]) for number in range(len(sizes) - 1)]
    return jnp.split(array, ends, axis=-1)


def is_read(output: AttentionOutput) -> Bool[Array, "*B T"]:
    """Tells which queries could read any slot; of several heads, one that can is enough."""
    reach = output.aux["reach"] > 0
    return reach.any(-1) if reach.ndim == output.weights.ndim else reach  # *B T H, or *B T


@dataclasses.dataclass(frozen=True)
class EachSource(Mechanism):
    """Attention to several sources, each of which is asked by a mechanism of its own.

    Memory, state and the parameters in `sources` hold those of each source under its name.

    Attributes:
      asking: (name, the mechanism that asks it) of each source, the first one first.
      alignment_head: The head that stands for all heads that ask the first source; None for their
        mean.
    """

    asking: tuple[tuple[str, OneSource], ...]
    alignment_head: int | None = dataclasses.field(default=None, kw_only=True)

    @abc.abstractmethod
    def combine(
        self, params: Params, query: Array, ask: Ask, call: Call
    ) -> tuple[Array, dict[str, Array]]:
        """Combination: makes one context of what the sources answer.

        Args:
          params: All parameters.
          query: `*B T Dq`.
          ask: From a source's name and queries to its answer; asks every source once.
          call: Mode and key.

        Returns:
          (context `*B T D`, what else is to stand in `aux`).
        """

    @property
    def mechanisms(self) -> dict[str, OneSource]:
        """The mechanisms by the names of their sources, in their order."""
        (name, first), *others = self.asking
        return {name: with_alignment_head(first, self.alignment_head), **dict(others)}

    @property
    def first(self) -> OneSource:
        """The mechanism that asks the first source."""
        return self.asking[0][1]

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of each source's mechanism under its name, in a group that nothing else is in."""
        return {SOURCES: {name: mechanism.parameters for name, mechanism in self.asking}}

    @property
    def num_heads(self) -> int:  # type: ignore[override]
        """How many heads ask the first source."""
        return self.first.num_heads

    @property
    def traits(self) -> Traits:  # type: ignore[override]
        """What may be relied on; how far the others were read, weights of the first do not tell."""
        every = [mechanism.traits for _, mechanism in self.asking]
        return Traits(
            is_alignment=self.first.traits.is_alignment,
            reads_query=any(traits.reads_query for traits in every),
            reads_length=any(traits.reads_length for traits in every),
        )

    @property
    def is_parallel(self) -> bool:  # type: ignore[override]
        """Whether queries do not depend on one another."""
        return all(mechanism.is_parallel for _, mechanism in self.asking)

    @property
    def observes(self) -> frozenset[str]:  # type: ignore[override]
        """Names of what `observe` has to be given between queries."""
        return frozenset().union(*(mechanism.observes for _, mechanism in self.asking))

    @property
    def carries(self) -> tuple[str, ...]:  # type: ignore[override]
        """Names of what is carried from query to query for the first source."""
        return self.first.carries

    @property
    def tells_remaining(self) -> bool:  # type: ignore[override]
        """Whether `remaining` returns anything, which is of the first source."""
        return self.first.tells_remaining

    def make_memory(
        self, params: Params, sources: Sources, positions: Int[Array, "S"] | None = None
    ) -> Memory:
        """Prepares each source by itself; each field holds its arrays by the sources' names."""
        made = {}
        for name, mechanism in self.asking:
            own = parameters_of(params, name)
            made[name] = mechanism.make_memory(own, {name: sources[name]}, positions)
        fields = [field.name for field in dataclasses.fields(Memory)]
        return Memory(**{
            field: {name: getattr(memory, field) for name, memory in made.items()}
            for field in fields
        })  # fmt: skip

    def init_state(self, params: Params, memory: Memory) -> State:
        """Returns what is carried into the first query, for each source."""
        return {
            name: mechanism.init_state(parameters_of(params, name), _part(memory, name))
            for name, mechanism in self.mechanisms.items()
        }

    def observe(
        self,
        params: Params,
        memory: Memory,
        state: State,
        observed: Mapping[str, Array],
        where: Array | None = None,
    ) -> State:
        """Tells each source's mechanism what became known since the last query."""
        return {
            name: mechanism.observe(
                parameters_of(params, name), _part(memory, name), state[name], observed, where
            )
            for name, mechanism in self.mechanisms.items()
        }

    def remaining(self, state: State) -> Array | None:
        """Returns how much of each slot of the first source is left to translate."""
        name, mechanism = self.asking[0]
        return mechanism.remaining(state[name])

    def attend(
        self,
        params: Params,
        query: Array,
        memory: Memory,
        state: State | None = None,
        *,
        mask: Array | None = None,
        bias: Array | None = None,
        call: Call = Call(),
        **rest: Any,
    ) -> tuple[AttentionOutput, State]:
        """Answers queries; a mask or a bias has the slots of all sources side by side, or one."""
        mechanisms = self.mechanisms
        state = self.init_state(params, memory) if state is None else state
        sizes = [memory.mask[name].shape[-1] for name in mechanisms]
        masks, biases = (
            dict(zip(mechanisms, split_slots(rows, sizes), strict=True)) for rows in (mask, bias)
        )
        # The first has the call's own key, whatever stands beside it.
        calls = {name: call.fold(n) if n else call for n, name in enumerate(mechanisms)}
        answers: dict[str, AttentionOutput] = {}
        after: State = {}

        def ask(name: str, query: Array) -> AttentionOutput:
            answers[name], after[name] = mechanisms[name].attend(
                parameters_of(params, name), query, _part(memory, name), state[name],
                mask=masks[name], bias=biases[name], call=calls[name], **rest,
            )  # fmt: skip
            return answers[name]

        context, aux = self.combine(params, query, ask, call.fold(len(mechanisms)))
        first, *others = mechanisms
        told = dict(answers[first].aux)
        for name in others:
            told |= under(name, answers[name])
        weights, scores = answers[first].weights, answers[first].scores
        return AttentionOutput(context, weights, scores, {**told, **aux}), after


def _part(memory: Memory, name: str) -> Memory:
    """Returns the memory of one source."""
    return Memory(memory.keys[name], memory.values[name], memory.mask[name], memory.aux[name])
