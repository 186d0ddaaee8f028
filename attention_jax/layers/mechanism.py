"""Attention mechanisms: the protocol that they share, and what the file of one holds.

A mechanism file in `layers/mechanisms` holds `PAPER`, a frozen dataclass `Config`, which is a
`MechanismConfig`, and `build(config, query_dim, key_dim, **needs)`. Its file name is its name in
configs. It returns `MechanismParts`, which is one head that asks one source: `layers.attention`
makes a `Mechanism` of it, with as many heads as the config says. Or it returns a `Mechanism` of its
own, such as one that asks several sources.

What a mechanism needs to know of its model beyond two depths it names in `Config.needs`, and
`build` takes it by keyword:

  source_vocabulary_size  how many source ids there are; the memory's `aux["source_ids"]` holds them
  word_dim                depth of an embedded target word; `observed["written_word"]` is one, and
                          `observed["written_id"]` its id, `*B 1`
  value_dim               depth of the values
  place                   what asks what: `cross` (another sequence), `self`, or `causal` (itself,
                          up to the position that asks)
  sources                 ((name, depth of its annotations), ...) of all sources; one that names it
                          attends to any number of them, any other one to one

Of several sources, weights and scores are over the slots of the first, which is what alignments,
coverage and pictures are of; `layers.several_sources` has what combinations of sources share.
"""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from jaxtyping import Bool, Float, Int

from attention_jax.discovery import Parts, build_part
from attention_jax.errors import ConfigError
from attention_jax.layers.encoder import Sources
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.attend import AttentionSpec
from attention_jax.types import Array, AttentionOutput, Call, Memory, Params, State

MECHANISMS = Parts("attention_jax.layers.mechanisms", having=("name",))


class MechanismConfig:
    """Mechanism config: what is known of a mechanism before it is built.

    Attributes:
      needs: Names of what `build` needs beside the depths; see above.
      reads_keys: Whether it compares queries with keys, rather than choosing slots by their places
        alone, or not at all.
      tells_key_bias: Whether what is added to all keys alike changes weights, as in additive
        scores.
      reads_steps: Whether STEPs among the written symbols move it, so that targets must have some.
      normalizes: Whether weights are scores that are normalised over slots, so that one more slot
        can stand beside them, such as a sink.
      projects_heads: Whether it makes its heads out of the whole depths, instead of dealing each
        an equal part of them.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    reads_keys: ClassVar[bool] = True
    tells_key_bias: ClassVar[bool] = False
    reads_steps: ClassVar[bool] = False
    normalizes: ClassVar[bool] = True
    projects_heads: ClassVar[bool] = False

    @property
    def of_one(self) -> "MechanismConfig":
        """The mechanism with which a sequence attends to itself, where no other is named."""
        return self


class Traits(NamedTuple):
    """Traits of attention: what decoders, readouts and stacks of self-attention may rely on.

    Attributes:
      is_alignment: Whether its weights say which positions of the first source were attended to.
      reads_query: Whether anything depends on what the queries are.
      reads_length: Whether its weights depend on how many slots there are.
      is_online: Whether, once training is over, a query reads no slot beyond the last one that has
        weight, or all of them where its weights add up to less than one.
    """

    is_alignment: bool = True
    reads_query: bool = True
    reads_length: bool = False
    is_online: bool = False


class MechanismParts(NamedTuple):
    """Attention head: how one head attends, with its parameters.

    Attributes:
      spec: How it attends.
      parameters: Its parameters, each of which tells whether heads of one memory share it.
      traits: What may be relied on.
      context_dim: Depth of its contexts, where that is not the values' depth.
      remaining: Name of the tracked value `*B S C` that says how much of each slot is left to
        translate, if there is one.
      provides: As of `Mechanism`.
    """

    spec: AttentionSpec
    parameters: Mapping[str, Parameter]
    traits: Traits = Traits()
    context_dim: int | None = None
    remaining: str | None = None
    provides: tuple[str, ...] = ()


class Mechanism(abc.ABC):
    """Attention mechanism, ready to be used: pure functions of its parameters.

    Attributes:
      context_dim: Depth of its contexts.
      num_heads: How many heads there are.
      traits: What may be relied on.
      is_parallel: Whether queries do not depend on one another.
      is_causal: Whether it reads no slot after its query's own position, whatever the mask.
      is_softmax: Whether weights are the softmax of the scores, over all slots of the memory.
      averages_values: Whether contexts are averages of the values as they were given.
      observes: Names of what `observe` has to be given between queries.
      carries: Names of what it carries from query to query.
      tells_remaining: Whether `remaining` returns anything.
      provides: Names in `aux` of what only an objective that reads them teaches it by.
    """

    context_dim: int
    num_heads: int = 1
    traits: Traits = Traits()
    is_parallel: bool = True
    is_causal: bool = False
    is_softmax: bool = False
    averages_values: bool = False
    observes: frozenset[str] = frozenset()
    carries: tuple[str, ...] = ()
    tells_remaining: bool = False
    provides: tuple[str, ...] = ()

    @property
    @abc.abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The tree of its parameters."""

    @abc.abstractmethod
    def make_memory(
        self, params: Params, sources: Sources, positions: Int[Array, "S"] | None = None
    ) -> Memory:
        """Prepares the sources once; `positions` are those of the slots, 0 .. S-1 if not given.

        Raises:
          ValueError: If there are several sources and it attends to one.
        """

    def init_state(self, params: Params, memory: Memory) -> State:
        """Returns what is carried into the first query."""
        return {}

    @abc.abstractmethod
    def attend(
        self,
        params: Params,
        query: Float[Array, "*B T Dq"],
        memory: Memory,
        state: State | None = None,
        *,
        observed: Mapping[str, Array] | None = None,
        mask: Bool[Array, "*#B #T S"] | Bool[Array, "*#B #H #T S"] | None = None,
        bias: Float[Array, "*#B #T S"] | Float[Array, "*#B #H #T S"] | None = None,
        positions: Int[Array, "T"] | None = None,
        call: Call = Call(),
        is_fused: bool = False,
    ) -> tuple[AttentionOutput, State]:
        """Answers queries; see `ops.attend.attend`.

        A mask or a bias with one axis more than the queries has, `*B H T S`, is of each head.
        """

    def observe(
        self,
        params: Params,
        memory: Memory,
        state: State,
        observed: Mapping[str, Array],
        where: Bool[Array, "*B"] | None = None,
    ) -> State:
        """Tells what became known since the last query; see `ops.attend.observe`."""
        return state

    def remaining(self, state: State) -> Float[Array, "*B S C"] | None:
        """Returns how much of each slot is left to translate, where that is tracked."""
        return None

    def value_norms(
        self, params: Params, memory: Any, output: AttentionOutput
    ) -> Float[Array, "*B T S"]:
        """Norm-based analysis: returns the length of what each slot has added to a context.

        Args:
          params: Its parameters.
          memory: What `make_memory` returned.
          output: What `attend` returned for all queries.

        Raises:
          ConfigError: If contexts are not averages of values of one source.
        """
        raise ConfigError(
            "config.model.attention.name: expected attention to one source, whose values it "
            f"averages, for value norms, found {type(self).__name__}"
        )


def described(config: Any) -> str:
    """Describes a mechanism in messages, with the score inside its window if it has one."""
    inner = getattr(config, "score", None)  # a window, a gate or heads over a score
    return repr(config.name) if inner is None else f"{config.name!r} over {inner.name!r}"


def check_one_depth(config: MechanismConfig, query_dim: int, key_dim: int) -> None:
    """Raises `ValueError` if queries and keys, which are compared as they are, differ in depth."""
    if query_dim != key_dim:
        raise ValueError(
            f"attention: expected queries and keys of one depth for {config.name}, "
            f"found {query_dim} and {key_dim}; luong_general compares different depths"
        )


def build_parts(
    config: MechanismConfig, query_dim: int, key_dim: int, sizes: Mapping[str, Any]
) -> MechanismParts | Mechanism:
    """Builds what the mechanism's file builds.

    Raises:
      ValueError: If `sizes` lacks something that the mechanism needs.
      ConfigError: If the file builds something else.
    """
    missing = [name for name in config.needs if name not in sizes]
    if missing:
        raise ValueError(
            f"attention.name: expected a model with {' and '.join(missing)} for {config.name!r}, "
            "found none"
        )
    # Only what it asked for: no mechanism has to take sizes that it does not use.
    needed = {name: sizes[name] for name in config.needs}
    return build_part(config, (MechanismParts, Mechanism), query_dim, key_dim, **needed)
