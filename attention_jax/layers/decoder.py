"""Decoders: the interface that they share, the run of recurrent ones, and their lookup.

A decoder is a frozen dataclass of pure functions. It is given parameters, asks a memory, and
returns one feature vector for each target token; the vocabulary's logits are computed from these
elsewhere, for all steps at once. A decoder file in `layers/decoders` holds `PAPER`, a frozen
dataclass `Config` and `build(config, sizes, mechanism_config) -> SequenceDecoder`.
"""

import abc
import dataclasses
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.typing import DTypeLike

from attention_jax.configuration import setting
from attention_jax.discovery import Parts
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import Encoded, SequenceEncoder, Sources, first_source
from attention_jax.layers.mechanism import Mechanism
from attention_jax.layers.parameters import Initialization, declare
from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.ops.masks import shift_right
from attention_jax.types import Array, AttentionOutput, Call, Memory, Params, State

DECODERS = Parts("attention_jax.layers.decoders")

# Apart from the numbers with which decoders derive the keys of their own dropout.
ATTENTION_KEY = 2**16
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
        if alignment_head is not None and mechanism.num_heads == 1:
            raise ValueError("decoder.alignment_head: expected several heads beside it, found one")
        if (alignment_head or 0) >= mechanism.num_heads:
            raise ValueError(
                f"decoder.alignment_head: expected less than the attention's {mechanism.num_heads} "
                f"heads, found {alignment_head}"
            )
        if alignment_head is None:
            return mechanism
        return dataclasses.replace(mechanism, alignment_head=alignment_head)


@dataclasses.dataclass(frozen=True)
class DecoderConfig:
    """What the configs of all decoders share.

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
      knows_last_word: Whether the query for a word has read the word before it.
      reads_contexts: Whether states or features depend on what has been attended to.
      is_online: Whether a step reads nothing of the source beyond what the weights that it returns
        say, once training is over; see `Mechanism.is_online`.
    """

    mechanism: Mechanism
    feature_dim: int
    knows_last_word = True
    reads_contexts = True
    is_online = False

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


class RecurrentDecoder(SequenceDecoder):
    """Recurrent decoder: consumes one token after another.

    Attributes:
      mechanism: How it attends to the source.
      feature_dim: Depth of what it returns for each token.
    """

    @property
    def is_online(self) -> bool:  # type: ignore[override]
        """Whether its state starts from nothing, and its attention stops while it reads."""
        bridge = getattr(getattr(self, "config", None), "bridge", None)
        return self.mechanism.is_online and bridge == "zero"

    @abc.abstractmethod
    def first_state(self, params: Params, encoded: Encoded) -> State:
        """Returns the state before the first token, without the mechanism's."""

    @abc.abstractmethod
    def inputs(self, params: Params, embedded: Array) -> Any:
        """Projects embedded tokens `*B E`: all of a step's work that needs no recurrence."""

    @abc.abstractmethod
    def advance(
        self,
        params: Params,
        memory: Memory,
        dropout: Any,
        state: State,
        inputs: Any,
        call: Call = Call(),
    ) -> tuple[State, dict[str, Any]]:
        """Consumes one token.

        Returns:
          (state, outputs): outputs hold `attention`, without its query axis, and what `readout`
          needs.
        """

    @abc.abstractmethod
    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Returns the features `*B F` of steps whose outputs are known."""

    def start(
        self, params: Params, sources: Sources, max_length: int
    ) -> tuple[Memory, State]:
        """Prepares the sources; a recurrent state is as large for any length."""
        memory = self.memory(params, sources)
        state = self.first_state(params, first_source(sources))
        attention = self.mechanism.init_state(params.get("attention", {}), memory)
        return memory, {**state, "attention": attention}

    def dropout(self, call: Call, batch: int, dtype: DTypeLike) -> Any:
        """Variational dropout: draws factors for the recurrence, the same at all steps."""
        return None

    def memory(self, params: Params, sources: Sources) -> Memory:
        """Prepares the sources for attention."""
        return self.mechanism.make_memory(params["attention"], sources)

    def observe(
        self, params: Params, memory: Memory, state: State, told: Told, where: Array | None = None
    ) -> State:
        """Tells the mechanism of the word that has been written, where there is one."""
        if not self.mechanism.observes:
            return state
        attention = self.mechanism.observe(
            params["attention"], memory, state["attention"], told, where
        )
        return {**state, "attention": attention}

    def attend(
        self, params: Params, query: Array, memory: Memory, state: State, call: Call = Call()
    ) -> tuple[AttentionOutput, State]:
        """Cross-attention: asks the memory with one query `*B Dq`, at the state's position."""
        output, attention_state = self.mechanism.attend(
            params["attention"],
            query[..., None, :],  # *B Dq -> *B 1 Dq
            memory,
            state["attention"],
            positions=position_of(state),
            mask=call.mask_of("attention"),
            call=call,
        )
        # The query axis is counted from the front: it is not the last but one in every output.
        axis = query.ndim - 1
        return jax.tree.map(lambda part: jnp.squeeze(part, axis), output), attention_state

    def run(
        self,
        params: Params,
        memory: Memory,
        state: State,
        embedded: Array,
        *,
        told: Told = {},  # noqa: B006
        mask: Array | None = None,
        call: Call = Call(),
    ) -> Decoded:
        """Teacher forcing: decodes with known targets, in a scan over their positions."""
        dropout = self.dropout(call, embedded.shape[0], embedded.dtype)
        # Time-major throughout, so that only the narrow ends are transposed.
        by_time = _swap(embedded)
        # What every step reads: `deferred_scan` computes the gradients of these after the loop.
        constants = (params, memory, dropout)
        state, outputs = self.recur(self.advance, constants, state, by_time, mask, call, told)
        features = self.readout(params, outputs, by_time)
        return Decoded(_swap(features), jax.tree.map(_swap, outputs["attention"]), state)

    def recur(
        self,
        advance: Callable[..., tuple[State, dict[str, Any]]],
        constants: tuple[Params, Memory, Any],
        state: State,
        embedded: Array,
        mask: Array | None,
        call: Call,
        told: Told = {},  # noqa: B006
    ) -> tuple[State, dict[str, Any]]:
        """Recurrence: scans a step over known targets, each with the word before it observed.

        Args:
          advance: `advance`, or as much of it as the recurrence needs.
          constants: Parameters, memory and what `dropout` drew.
          state: The state before the first token.
          embedded: `T B E`.
          mask: `B T`, or None where all targets are real.
          call: Mode and key; each step has a key of its own for what the mechanism drops or draws.
          told: As `run` has it.

        Returns:
          (state, outputs), the latter with a leading time axis.
        """
        words = None
        if self.mechanism.observes:  # each step the word before it; BOS has not been written
            words = self._observed(embedded, {name: _swap(part) for name, part in told.items()})
            words = (words, None if mask is None else _swap(shift_right(mask, False)))

        # Split before the scan, so that no key has to be carried through it; each step has its own
        # beside the whole's.
        call = call.fold(ATTENTION_KEY)
        rngs = call.split(embedded.shape[0]) if call.train else None

        def step(constants: Any, state: State, inputs: Any) -> tuple[State, Any]:
            projected, words, rng = inputs
            if words is not None:
                state = self.observe(*constants[:2], state, *words)
            return advance(*constants, state, projected, call.at_step(rng))

        # All input projections at once, T B G, instead of one small product at each step.
        inputs = (self.inputs(constants[0], embedded), words, rngs)
        return deferred_scan(step, constants, state, inputs)

    def step(
        self,
        params: Params,
        memory: Memory,
        state: State,
        embedded: Array,
        told: Told = {},  # noqa: B006
    ) -> tuple[Array, AttentionOutput, State]:
        """Decodes one token `*B E`."""
        # As in training, step by step: the same functions, for a single token.
        inputs = self.inputs(params, embedded)
        state = self.observe(params, memory, state, self._observed(embedded, told))
        state, outputs = self.advance(params, memory, None, state, inputs)
        return self.readout(params, outputs, embedded), outputs["attention"], state

    def remaining(
        self,
        params: Params,
        memory: Memory,
        state: State,
        word: Array,
        where: Array,
        told: Told = {},  # noqa: B006
    ) -> Array | None:
        """Returns what the mechanism says is left of each slot."""
        state = self.observe(params, memory, state, self._observed(word, told), where)
        return self.mechanism.remaining(state["attention"])

    def _observed(self, embedded: Array, told: Told) -> Told:
        """Returns what the mechanism asks to be told of embedded words."""
        known = {WRITTEN_WORD: embedded, **told}
        asked = sorted(self.mechanism.observes)
        if missing := [name for name in asked if name not in known]:
            raise ValueError(f"told: expected {' and '.join(missing)}, found {sorted(known)}")
        return {name: known[name] for name in asked}


def _swap(array: Array) -> Array:
    return jnp.swapaxes(array, 0, 1)


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
