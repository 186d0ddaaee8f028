"""Pyramidal recurrent encoder: each level reads pairs of the level below, half as many.

  h^0 = BLSTM(x)
  h^l = BLSTM([h^{l-1}_{2u}; h^{l-1}_{2u+1}] for all u),  l = 1 .. levels

A source of n vectors becomes ceil(n / 2^levels) annotations, each of which stands for as many
neighbouring vectors. Without a level this is the bidirectional encoder `recurrent`.
"""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.encoder import READINGS, Encoded, FinalCarry, SequenceEncoder
from attention_jax.layers.recurrent_layer import drop_inputs, layer_parameters, read_layer
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.pyramids import merge_pairs, pyramid_spans
from attention_jax.ops.recurrent import CELLS
from attention_jax.types import Array, Call, Params

PAPER = "Chan, Jaitly, Le and Vinyals (2016), Listen, attend and spell, section 3.1, eq. 5"
_BOTH_WAYS = READINGS["bidirectional"]


@dataclasses.dataclass(frozen=True)
class Config:
    """A pyramid of bidirectional recurrent layers.

    Attributes:
      name: The encoder.
      cell: `lstm` as in the paper, `gru` or `gru_reset_before`.
      hidden_dim: Depth of the hidden state of each direction (256 in the paper).
      levels: How many layers halve the length (3 in the paper), above one that does not.
      dropout: Share of a layer's input that is dropped, from the second layer on.
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
    """

    name: str = setting("pyramidal")
    cell: str = setting("lstm", choices=CELLS)
    hidden_dim: int = setting(256, at_least=1)
    levels: int = setting(3, at_least=1)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)
    recurrent_dropout: float = setting(0.0, at_least=0.0, below=1.0)


def build(config: Config, input_dim: int, attention: Any = None) -> "PyramidalEncoder":
    """Builds the encoder for vectors of the given depth."""
    return PyramidalEncoder(config, input_dim)


@dataclasses.dataclass(frozen=True)
class PyramidalEncoder(SequenceEncoder):
    """Pyramidal encoder as pure functions."""

    config: Config
    input_dim: int
    keeps_positions = False

    @property
    def output_dim(self) -> int:
        """Depth of an annotation."""
        return self.finals[-1].width

    @property
    def finals(self) -> tuple[FinalCarry, ...]:
        """What each layer ends with."""
        config = self.config
        final = FinalCarry(_BOTH_WAYS, config.hidden_dim, config.cell)
        return (final,) * (1 + config.levels)

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, input_dim, tree = self.config, self.input_dim, {}
        for layer, final in enumerate(self.finals):
            tree |= layer_parameters(layer, config.cell, _BOTH_WAYS, input_dim, config.hidden_dim)
            input_dim = 2 * final.width  # two neighbours, each of two directions
        return tree

    def encode(self, params: Params, embedded: Array, mask: Array, call: Call = Call()) -> Encoded:
        """Reads vectors `B N E` level by level, into `B P D` with P = ceil(N / 2^levels)."""
        config, finals = self.config, []
        vectors, is_real = zero_padding(embedded, mask), mask
        for layer in range(1 + config.levels):
            if layer:
                vectors, is_real = merge_pairs(vectors, is_real)
                vectors = drop_inputs(vectors, config.dropout, layer, call)
            vectors, carries = read_layer(
                params, vectors, is_real, layer=layer, cell=config.cell, readings=_BOTH_WAYS,
                recurrent_dropout=config.recurrent_dropout, call=call,
            )  # fmt: skip
            finals.append(carries)
        spans = pyramid_spans(mask, config.levels)
        return Encoded(vectors, is_real, tuple(finals), spans=spans)
