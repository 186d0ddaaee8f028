"""Encoders: the interface that they share, what they return, and their lookup.

An encoder is a frozen dataclass of pure functions that turns vectors, such as embedded tokens, into
annotations, the slots of a memory: one for each vector, or fewer. An encoder file in
`layers/encoders` holds `PAPER`, a frozen dataclass `Config` and
`build(config, input_dim, attention) -> SequenceEncoder`; `attention` configures the model's own
mechanism, for encoders that attend.
"""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from attention_jax.discovery import Parts
from attention_jax.layers.parameters import Initialization, declare
from attention_jax.ops.masks import masked_mean
from attention_jax.types import Array, Call, Leaf, Params, State

ENCODERS = Parts("attention_jax.layers.encoders", having=("name",))

# What a direction reads in; forward first, as annotations and carries are joined.
READINGS = {
    "forward": ("forward",),
    "backward": ("backward",),
    "bidirectional": ("forward", "backward"),
}


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Encoded:
    """Encoded source: annotations with their mask, and what else the encoder has computed.

    Attributes:
      annotations: `B S D`, zero at padding; what queries are compared with.
      mask: `B S`, True at real tokens.
      finals: For each layer of a recurrent encoder, for each direction in which it reads, the
        final carry; empty where nothing recurs.
      values: `B S D`, what attention averages, or None where that is the annotations.
      spans: `B S 2`, the first input position that each slot stands for, and the one after the
        last; None where slot s stands for position s.
      aux: What the memory holds beside these, an array `B S ...` each: the ids of its tokens.
      outputs: What else was computed, for the model's outputs: weights of self-attention.
    """

    annotations: Leaf
    mask: Leaf
    finals: tuple[dict[str, State], ...] = ()
    values: Leaf | None = None
    spans: Leaf | None = None
    aux: Mapping[str, Leaf] = dataclasses.field(default_factory=dict)
    outputs: Mapping[str, Leaf] = dataclasses.field(default_factory=dict)

    @property
    def averaged(self) -> Array:
        """`B S D`: what attention averages."""
        return self.annotations if self.values is None else self.values

    @property
    def summary(self) -> Array:
        """`B D`: the final hidden states of the top layer, side by side, or the mean value."""
        # Nothing recurs that could have read all of it: the mean stands for the whole.
        if not self.finals:
            return masked_mean(self.averaged, self.mask)
        return self.final_entry(len(self.finals) - 1, "hidden")

    def final_entry(self, layer: int, entry: str) -> Array:
        """Joins one entry of the final carries of a layer's directions."""
        finals = self.finals[layer]
        # Forward first: tree transformations sort a dict's keys.
        readings = [reading for reading in READINGS["bidirectional"] if reading in finals]
        return jnp.concatenate([finals[reading][entry] for reading in readings], axis=-1)


# What a decoder is given: the encoded sources by their names, in the order of the config.
Sources = Mapping[str, Encoded]


def first_source(sources: Sources) -> Encoded:
    """Returns the first source, from which a decoder's initial state is made."""
    return next(iter(sources.values()))


def sequence(annotations: Leaf, mask: Leaf, **fields: Any) -> Sources:
    """Self-attention: returns a sequence as the only source, so that it can attend to itself."""
    return {"source": Encoded(annotations, mask, **fields)}


class FinalCarry(NamedTuple):
    """Final carry: what a layer of a recurrent encoder ends with.

    Attributes:
      readings: The directions in which the layer reads.
      depth: Depth of each direction's hidden state.
      cell: The cell whose carry it is.
    """

    readings: tuple[str, ...]
    depth: int
    cell: str

    @property
    def width(self) -> int:
        """Depth of all directions side by side."""
        return self.depth * len(self.readings)


class SequenceEncoder(abc.ABC):
    """Encoder: pure functions from embedded tokens to annotations.

    Attributes:
      output_dim: Depth of an annotation, and of a value.
      makes_keys: Whether parts of it make keys and nothing else.
      keeps_positions: Whether slot s of what it returns stands for position s of what it reads.
        Where it merges or leaves out positions, `Encoded.spans` says what slots stand for.
      is_causal: Whether the annotation of a position depends on those before it alone, so that a
        prefix is encoded as it is within the whole.
    """

    output_dim: int
    makes_keys = False
    keeps_positions = True
    is_causal = False

    @property
    def finals(self) -> tuple[FinalCarry, ...]:
        """What each layer ends with; empty where nothing recurs."""
        return ()

    @property
    @abc.abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The tree of its parameters."""

    @abc.abstractmethod
    def encode(self, params: Params, embedded: Array, mask: Array, call: Call = Call()) -> Encoded:
        """Reads vectors `B N E`, of which those under `mask` (`B N`) are real.

        Args:
          params: Its parameters.
          embedded: Embedded tokens, or what else an input has; NaN at padding changes nothing.
          mask: True at real positions.
          call: Mode and key.

        Returns:
          One annotation for each slot, which is each position if it `keeps_positions`.
        """


@dataclasses.dataclass(frozen=True)
class DepthKeepingEncoder(SequenceEncoder):
    """Encoder whose annotations and values are as deep as the vectors that it reads.

    Attributes:
      config: The encoder's config.
      input_dim: Depth of these vectors.
    """

    config: Any
    input_dim: int

    @property
    def output_dim(self) -> int:
        """Depth of an annotation, and of a value."""
        return self.input_dim


class Encoder(nn.Module):
    """Encoder as a Linen module, which owns its parameters.

    Attributes:
      encoder: Its pure functions.
      initialization: How parameters start.
    """

    encoder: SequenceEncoder
    initialization: Initialization

    def setup(self) -> None:
        """Declares the parameters."""
        self.weights = declare(self, self.encoder.parameters, self.initialization)

    def initialize(self) -> None:
        """Draws the parameters, which `setup` declares, and computes nothing of them."""

    def __call__(
        self, embedded: Array, mask: Array, call: Call = Call()
    ) -> Encoded:
        """Reads embedded tokens; see `SequenceEncoder.encode`."""
        return self.encoder.encode(self.weights, embedded, mask, call)
