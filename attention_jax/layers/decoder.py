"""What recurrent decoders share: their interface, their run over known targets, their lookup.

A decoder is a frozen dataclass of pure functions. It is given parameters, asks a memory, and
returns one feature vector for each target token; the vocabulary's logits are computed from these
elsewhere, for all steps at once. A decoder file in `layers/decoders` holds `PAPER`, a frozen
dataclass `Config` and `build(config, sizes, mechanism_config) -> RecurrentDecoder`.
"""

import abc
import importlib
import pkgutil
from types import ModuleType
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn
from jax.typing import DTypeLike

from attention_jax.layers import decoders
from attention_jax.layers.attention import Mechanism
from attention_jax.layers.encoders import Encoded
from attention_jax.layers.parameters import Initialization, declare
from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.types import Array, AttentionOutput, Memory, Params, State


class DecoderSizes(NamedTuple):
    """Depths that a decoder must fit.

    Attributes:
      embedding_dim: Depth of an embedded target token.
      annotation_dim: Depth of a source annotation.
      encoder: The encoder's config, whose final states may start the decoder.
    """

    embedding_dim: int
    annotation_dim: int
    encoder: Any


class RecurrentDecoder(abc.ABC):
    """Pure functions of a decoder; leading batch axes are free where `*B` is written.

    Attributes:
      mechanism: How it attends.
      feature_dim: Depth of what it returns for each token.
    """

    mechanism: Mechanism
    feature_dim: int

    @property
    @abc.abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The tree of its parameters."""

    @abc.abstractmethod
    def start(self, params: Params, encoded: Encoded) -> State:
        """Returns the state before the first token, with the batch as leading axis."""

    @abc.abstractmethod
    def inputs(self, params: Params, embedded: Array) -> Any:
        """Projects embedded tokens `*B E`, with all that needs no recurrence."""

    @abc.abstractmethod
    def advance(
        self, params: Params, memory: Memory, dropout: Any, state: State, inputs: Any
    ) -> tuple[State, dict[str, Any]]:
        """Consumes one token.

        Returns:
          (state, outputs): outputs hold `attention`, without its query axis, and what `readout`
          needs.
        """

    @abc.abstractmethod
    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Returns the features `*B F` of steps whose outputs are known."""

    def dropout(self, rng: Array | None, batch: int, dtype: DTypeLike, train: bool) -> Any:
        """Draws what is dropped inside the recurrence, constant through a sequence."""
        return None

    def memory(self, params: Params, encoded: Encoded) -> Memory:
        """Prepares the source for attention."""
        return self.mechanism.make_memory(
            params["attention"],
            encoded.annotations,
            encoded.annotations,
            encoded.mask,
            summary=encoded.summary,
        )

    def attend(
        self, params: Params, query: Array, memory: Memory, state: State
    ) -> tuple[AttentionOutput, State]:
        """Asks the memory with one query `*B Dq`, at the position that the state counts."""
        output, attention_state = self.mechanism.attend(
            params["attention"],
            query[..., None, :],
            memory,
            state["attention"],
            positions=state["position"].reshape(-1)[:1],
        )
        axis = query.ndim - 1
        return jax.tree.map(lambda part: jnp.squeeze(part, axis), output), attention_state

    def run(
        self,
        params: Params,
        memory: Memory,
        state: State,
        embedded: Array,
        *,
        rng: Array | None = None,
        train: bool = False,
    ) -> tuple[Array, AttentionOutput]:
        """Decodes with known targets `B T E`; returns features `B T F` and the attention."""
        dropout = self.dropout(rng, embedded.shape[0], embedded.dtype, train)
        # Time-major throughout, so that only the narrow ends are transposed.
        by_time = _swap(embedded)

        def step(constants: Any, state: State, inputs: Any) -> tuple[State, Any]:
            return self.advance(*constants, state, inputs)

        _, outputs = deferred_scan(
            step, (params, memory, dropout), state, self.inputs(params, by_time)
        )
        features = self.readout(params, outputs, by_time)
        return _swap(features), jax.tree.map(_swap, outputs["attention"])

    def step(
        self, params: Params, memory: Memory, state: State, embedded: Array
    ) -> tuple[Array, Array, State]:
        """Decodes one token `*B E`; returns features, weights `*B S` and the state."""
        inputs = self.inputs(params, embedded)
        state, outputs = self.advance(params, memory, None, state, inputs)
        return self.readout(params, outputs, embedded), outputs["attention"].weights, state


def _swap(array: Array) -> Array:
    return jnp.swapaxes(array, 0, 1)


def counted(state: State) -> Array:
    """Returns the position after the one that a state counts."""
    return state["position"] + 1


def start_position(batch: int) -> Array:
    """Returns the position of the first token, for every row."""
    return jnp.zeros((batch,), jnp.int32)


def decoder_names() -> list[str]:
    """Lists the decoders: the modules of `layers/decoders`."""
    return sorted(module.name for module in pkgutil.iter_modules(decoders.__path__))


def find_decoder(name: str) -> ModuleType:
    """Returns a decoder's module; raises `KeyError` with the list of names if there is none."""
    if name not in decoder_names():
        raise KeyError(decoder_names())
    return importlib.import_module(f"{decoders.__name__}.{name}")


def find_decoder_config(name: str) -> type:
    """Returns a decoder's config dataclass; raises `KeyError` as `find_decoder` does."""
    return find_decoder(name).Config


class Decoder(nn.Module):
    """A decoder's parameters.

    Attributes:
      decoder: Its pure functions.
      initialization: How parameters start.
    """

    decoder: RecurrentDecoder
    initialization: Initialization

    def setup(self) -> None:
        """Declares the parameters."""
        self.weights = declare(self, self.decoder.parameters, self.initialization)

    def start(self, encoded: Encoded) -> tuple[Memory, State]:
        """Returns the memory and the state before the first token."""
        memory = self.decoder.memory(self.weights, encoded)
        state = self.decoder.start(self.weights, encoded)
        attention = self.decoder.mechanism.init_state(self.weights.get("attention", {}), memory)
        return memory, {**state, "attention": attention}

    def run(
        self, memory: Memory, state: State, embedded: Array, *, rng: Array | None, train: bool
    ) -> tuple[Array, AttentionOutput]:
        """Decodes known targets; see `RecurrentDecoder.run`."""
        return self.decoder.run(self.weights, memory, state, embedded, rng=rng, train=train)

    def step(self, memory: Memory, state: State, embedded: Array) -> tuple[Array, Array, State]:
        """Decodes one token; see `RecurrentDecoder.step`."""
        return self.decoder.step(self.weights, memory, state, embedded)
