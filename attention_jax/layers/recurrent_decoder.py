"""Recurrent decoders: the run that they share, one token after another.

A decoder says how its state starts, which of a step's work needs no recurrence, how the state
advances, and what is read off it. Known targets are then a scan of `advance`, and a search takes
the same steps one by one.
"""

import abc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike

from attention_jax.layers.decoder import (
    WRITTEN_WORD,
    Decoded,
    SequenceDecoder,
    Told,
    position_of,
)
from attention_jax.layers.encoder import Sources
from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.ops.masks import shift_right
from attention_jax.types import Array, AttentionOutput, Call, Memory, Params, State

# Apart from the numbers with which decoders derive the keys of their own dropout.
ATTENTION_KEY = 2**16


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
        return self.mechanism.traits.is_online and bridge == "zero"

    @property
    def observes(self) -> frozenset[str]:
        """Names of what it is told of the last word; what `observe` is given."""
        return self.mechanism.observes

    @abc.abstractmethod
    def first_state(self, params: Params, sources: Sources) -> State:
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
        state = self.first_state(params, sources)
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
        if self.observes:  # each step the word before it; BOS has not been written
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

    def ask_afterwards(
        self,
        update: Callable[..., tuple[State, Array]],
        params: Params,
        memory: Memory,
        state: State,
        embedded: Array,
        call: Call,
    ) -> tuple[Array, AttentionOutput, State]:
        """Teacher forcing without feedback: scans the layers, then asks with all queries at once.

        For a mechanism that carries nothing, in a decoder whose recurrence needs no answer.

        Args:
          update: (params, dropout, state, projected word) -> (state, query `B D`), of one step.
          params: The decoder's parameters.
          memory: The source.
          state: The state before the first token.
          embedded: `B T E`.
          call: Mode and key.

        Returns:
          (queries `B T D`, attention, the state after the last step).
        """
        dropout = self.dropout(call, embedded.shape[0], embedded.dtype)
        inputs = self.inputs(params, _swap(embedded))

        def step(constants: Any, state: State, inputs: Any) -> tuple[State, Array]:
            return update(*constants, state, inputs)

        # The recurrence carries the layers alone: this attention has no state.
        layers = {name: value for name, value in state.items() if name != "attention"}
        layers, queries = deferred_scan(step, (params, dropout), layers, inputs)
        queries = _swap(queries)  # T B D -> B T D
        attention, after = self.mechanism.attend(
            params["attention"], queries, memory,
            mask=call.mask_of("attention"), call=call.fold(ATTENTION_KEY),
        )  # fmt: skip
        return queries, attention, {**layers, "attention": after}

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
        """Returns what is to be told of embedded words."""
        known = {WRITTEN_WORD: embedded, **told}
        asked = sorted(self.observes)
        if missing := [name for name in asked if name not in known]:
            raise ValueError(f"told: expected {' and '.join(missing)}, found {sorted(known)}")
        return {name: known[name] for name in asked}


def _swap(array: Array) -> Array:
    return jnp.swapaxes(array, 0, 1)
