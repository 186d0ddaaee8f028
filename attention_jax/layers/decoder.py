"""Decoders: the interface that they share, what they are told of sizes, and their lookup.

A decoder is a frozen dataclass of pure functions. It is given parameters, asks a memory, and
returns one feature vector for each target token; the vocabulary's logits are computed from these
elsewhere, for all steps at once. A decoder file in `layers/decoders` holds `PAPER`, a frozen
dataclass `Config` and `build(config, sizes, mechanism_config) -> SequenceDecoder`.
"""

import abc
import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
from flax import linen as nn

from attention_jax.configuration import setting
from attention_jax.discovery import Parts
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import SequenceEncoder, Sources
from attention_jax.layers.mechanism import Mechanism
from attention_jax.layers.parameters import Initialization, declare
from attention_jax.types import Array, AttentionOutput, Call, Params, State

DECODERS = Parts("attention_jax.layers.decoders", having=("name",))

# The keys under which recurrent decoders give the written word to mechanisms that observe it:
# embedded, and as its id.
WRITTEN_WORD, WRITTEN_ID = "written_word", "written_id"
Told = Mapping[str, Array]


class Decoded(NamedTuple):
    """Decoded targets: what a decoder returns for known targets.

    Attributes:
      features: `B T F`, one vector for each target token.
      attention: What each token has attended to; None without a source.
      state: The state after the last step.
      outputs: What else was computed, for the model's outputs: weights of each layer.
    """

    features: Array
    attention: AttentionOutput | None
    state: State
    outputs: Mapping[str, Any] = {}  # noqa: RUF012  (never changed)


class DecoderSizes(NamedTuple):
    """Sizes that a decoder must fit.

    Attributes:
      embedding_dim: Depth of an embedded target token.
      encoders: What encodes each source, by its name; the final states of the first may start the
        decoder. Empty where there is no source.
      vocabulary_size: How many source ids there are, or None where sources are not symbols.
    """

    embedding_dim: int
    encoders: Mapping[str, SequenceEncoder]
    vocabulary_size: int | None = None

    @property
    def encoder(self) -> SequenceEncoder | None:
        """What encodes the first source; None where there is none."""
        return next(iter(self.encoders.values()), None)

    def mechanism(
        self,
        config: Any,
        query_dim: int,
        alignment_head: int | None = None,
        tells: Collection[str] = (WRITTEN_WORD, WRITTEN_ID),
    ) -> Mechanism:
        """Builds the mechanism that asks the annotations with queries of the given depth.

        Args:
          config: The mechanism's.
          query_dim: Depth of the queries.
          alignment_head: The decoder's, see `DecoderConfig`.
          tells: Names of what the decoder lets a mechanism observe.

        Raises:
          ValueError: If it does not fit, or there is no such head.
        """
        depth = self.encoder.output_dim
        sources = tuple((name, encoder.output_dim) for name, encoder in self.encoders.items())
        sizes: dict[str, Any] = {"word_dim": self.embedding_dim, "sources": sources}
        if self.vocabulary_size is not None:
            sizes["source_vocabulary_size"] = self.vocabulary_size
        if len(sources) > 1 and "sources" not in config.needs:
            raise ValueError(
                "attention.name: expected a mechanism that attends to several sources for "
                f"{', '.join(self.encoders)}, found {config.name!r}"
            )
        mechanism = build_mechanism(config, query_dim, depth, depth, **sizes)
        if not mechanism.observes <= set(tells):
            raise ValueError(
                "attention.name: expected a mechanism that needs to know "
                f"{' and '.join(['queries', *tells])} only, found {config.name!r}"
            )
        return choose_head(mechanism, alignment_head)


def choose_head(mechanism: Any, alignment_head: int | None) -> Any:
    """Returns the mechanism with a head that stands for all, if one is given.

    Raises:
      ValueError: If there is no such head.
    """
    if alignment_head is None:
        return mechanism
    if mechanism.num_heads == 1:
        raise ValueError("decoder.alignment_head: expected several heads beside it, found one")
    if alignment_head >= mechanism.num_heads:
        raise ValueError(
            f"decoder.alignment_head: expected less than the attention's {mechanism.num_heads} "
            f"heads, found {alignment_head}"
        )
    return dataclasses.replace(mechanism, alignment_head=alignment_head)


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    """Decoder config: what those of all decoders share.

    Attributes:
      alignment_head: The head whose attention to the source stands for the decoder's, counted
        from 0; None for the mean of all. With the objective `supervised_alignment` this head
        learns to align, and the others are free for what translation needs.
    """

    alignment_head: int | None = setting(None, at_least=0)


class SequenceDecoder(abc.ABC):
    """Decoder: pure functions; leading batch axes are free where `*B` is written.

    Attributes:
      mechanism: How it attends to the source.
      feature_dim: Depth of what it returns for each token.
      provides: What may be asked of it, by the keys of `types.Model.provides`: `last_word`, where
        the query for a word has read the word before it.
      reads_contexts: Whether states or features depend on what has been attended to.
      fields: Names of the fields of a batch that it reads beside the sources, `B S ...`, which are
        in `aux` of the first one.
      is_online: Whether a step reads nothing of the source beyond what the weights that it returns
        say, once training is over; see `layers.mechanism.Traits`.
    """

    mechanism: Mechanism
    feature_dim: int
    provides: tuple[str, ...] = ("last_word",)
    reads_contexts = True
    is_online = False
    fields: tuple[str, ...] = ()

    @property
    @abc.abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The tree of its parameters."""

    @abc.abstractmethod
    def start(
        self, params: Params, sources: Sources, max_length: int
    ) -> tuple[Any, State]:
        """Prepares the sources.

        Args:
          params: The decoder's parameters.
          sources: The encoded sources by name.
          max_length: How many tokens `step` may be asked for.

        Returns:
          (memory, state): what is attended to, and the state before the first token, with the
          batch as leading axis.
        """

    @abc.abstractmethod
    def run(
        self,
        params: Params,
        memory: Any,
        state: State,
        embedded: Array,
        *,
        told: Told = {},  # noqa: B006  (never changed)
        mask: Array | None = None,
        call: Call = Call(),
    ) -> Decoded:
        """Teacher forcing: decodes with known targets.

        Args:
          params: The decoder's parameters.
          memory: The source.
          state: The state before the first token.
          embedded: `B T E`, the words before each target token, BOS first.
          told: What else a mechanism that observes is told of these words, `B T ...`: their ids.
          mask: `B T`, True at real target tokens; the others are not observed.
          call: Mode and key.

        Returns:
          Features, attention, the state after the last step, and what else was computed.
        """

    @abc.abstractmethod
    def step(
        self,
        params: Params,
        memory: Any,
        state: State,
        embedded: Array,
        told: Told = {},  # noqa: B006
    ) -> tuple[Array, AttentionOutput | None, State]:
        """Autoregressive step: decodes one token `*B E`; `told` is as `run` has it.

        Returns:
          (features `*B F`, attention without a query axis, or None without a source, state).
        """

    def remaining(
        self,
        params: Params,
        memory: Any,
        state: State,
        word: Array,
        where: Array,
        told: Told = {},  # noqa: B006
    ) -> Array | None:
        """Returns what is left to translate of each slot once the last word has been written.

        Args:
          params: The decoder's parameters.
          memory: The source.
          state: The state that asked for that word.
          word: `B E`, embedded.
          where: `B`, False where the state has observed its last word already.
          told: What else a mechanism that observes is told of the word.
        """
        return None

    def value_norms(self, params: Params, memory: Any, attention: AttentionOutput) -> Array:
        """Norm-based analysis of the attention that stands for the decoder's: returns `B T S`.

        Args:
          params: The decoder's parameters.
          memory: What `start` returned.
          attention: What `run` returned.

        Raises:
          ConfigError: If contexts are not averages of values of one source.
        """
        return self.mechanism.value_norms(params.get("attention", {}), memory, attention)


def told(ids: Array) -> Told:
    """Returns what mechanisms are told of written words `*B` beside their embeddings."""
    return {WRITTEN_ID: ids[..., None]}


def counted(state: State) -> Array:
    """Returns the position after the one that a state counts."""
    return state["position"] + 1


def position_of(state: State) -> Array:
    """Returns the position that a state counts, which all rows share: `1`."""
    rows = state["position"].reshape(-1)
    return rows[:1] if rows.size else jnp.zeros(1, rows.dtype)


def start_position(batch: int) -> Array:
    """Returns the position of the first token, for every row."""
    # One for each row, so that it follows its hypothesis as every leaf of a state does.
    return jnp.zeros((batch,), jnp.int32)


class Decoder(nn.Module):
    """Decoder as a Linen module, which owns the parameters; see `SequenceDecoder`.

    Attributes:
      decoder: Its pure functions.
      initialization: How parameters start.
    """

    decoder: SequenceDecoder
    initialization: Initialization

    def setup(self) -> None:
        """Declares the parameters."""
        self.weights = declare(self, self.decoder.parameters, self.initialization)

    def initialize(self) -> None:
        """Draws the parameters, which `setup` declares, and computes nothing of them."""

    def start(self, sources: Sources, max_length: int) -> tuple[Any, State]:
        """Prepares the sources."""
        return self.decoder.start(self.weights, sources, max_length)

    def run(
        self,
        memory: Any,
        state: State,
        embedded: Array,
        *,
        told: Told = {},  # noqa: B006
        mask: Array,
        call: Call,
    ) -> Decoded:
        """Teacher forcing: decodes known targets."""
        return self.decoder.run(
            self.weights, memory, state, embedded, told=told, mask=mask, call=call
        )

    def remaining(
        self, memory: Any, state: State, word: Array, where: Array, told: Told = {}  # noqa: B006
    ) -> Array | None:
        """Returns what is left to translate of each slot."""
        return self.decoder.remaining(self.weights, memory, state, word, where, told)

    def step(
        self, memory: Any, state: State, embedded: Array, told: Told = {}  # noqa: B006
    ) -> tuple[Array, AttentionOutput | None, State]:
        """Autoregressive step: decodes one token."""
        return self.decoder.step(self.weights, memory, state, embedded, told)
