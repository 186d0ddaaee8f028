"""Recurrent encoders: from embedded tokens to one annotation for each.

Annotations stand at their tokens' places whatever the direction of reading; `backward` is the
paper's reversed source with its annotations put back in order.
"""

import dataclasses
import itertools
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.encoder import READINGS, Encoded, FinalCarry, SequenceEncoder
from attention_jax.layers.recurrent_layer import drop_inputs, layer_parameters, read_layer
from attention_jax.ops.recurrent import CELLS
from attention_jax.types import Array, Call, Params

PAPER = "Bahdanau et al. (2015), section 3.2; Sutskever et al. (2014), section 2"


@dataclasses.dataclass(frozen=True)
class Config:
    """A recurrent encoder.

    Attributes:
      name: The encoder.
      cell: `gru` (reset after the product), `gru_reset_before` (as in the papers) or `lstm`.
      hidden_dim: Depth of the hidden state of each direction.
      num_layers: How many layers are stacked; each reads the one below.
      direction: `forward`, `backward` (the reversed source) or `bidirectional`.
      bidirectional_layers: With `bidirectional`, how many of the lowest layers read both ways;
        the others read forward. None for all of them.
      residual: Whether a layer from the second on adds its input to its output where their depths
        agree.
      dropout: Share of a layer's input that is dropped, from the second layer on.
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
    """

    name: str = setting("recurrent")
    cell: str = setting("gru", choices=CELLS)
    hidden_dim: int = setting(256, at_least=1)
    num_layers: int = setting(1, at_least=1)
    direction: str = setting("bidirectional", choices=READINGS)
    bidirectional_layers: int | None = setting(None, at_least=1)
    residual: bool = setting(False)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)
    recurrent_dropout: float = setting(0.0, at_least=0.0, below=1.0)

    def __post_init__(self) -> None:
        """Rejects fields that would change nothing."""
        if self.bidirectional_layers is not None and self.direction != "bidirectional":
            raise ValueError(
                "bidirectional_layers: expected only with direction 'bidirectional', "
                f"found {self.bidirectional_layers} with {self.direction!r}"
            )
        if self.bidirectional_layers is not None and self.bidirectional_layers >= self.num_layers:
            raise ValueError(
                f"bidirectional_layers: expected fewer than num_layers = {self.num_layers}, "
                f"found {self.bidirectional_layers}"
            )
        if self.num_layers == 1 and (self.dropout or self.residual):
            field = "dropout" if self.dropout else "residual"
            raise ValueError(f"{field}: expected more than one layer beside it, found one")
        # A layer that reads both ways is twice as deep, and cannot be added to one that does not.
        widths = [len(self.readings(layer)) for layer in range(self.num_layers)]
        if self.residual and all(a != b for a, b in itertools.pairwise(widths)):
            raise ValueError(
                "residual: expected a layer as deep as the one below it, found depths "
                f"{[self.hidden_dim * width for width in widths]}"
            )

    def readings(self, layer: int) -> tuple[str, ...]:
        """Returns the directions in which a layer reads."""
        if self.bidirectional_layers is not None and layer >= self.bidirectional_layers:
            return ("forward",)
        return READINGS[self.direction]


def build(config: Config, input_dim: int, attention: Any = None) -> "RecurrentEncoder":
    """Builds the encoder for embedded tokens of the given depth."""
    return RecurrentEncoder(config, input_dim)


@dataclasses.dataclass(frozen=True)
class RecurrentEncoder(SequenceEncoder):
    """Recurrent encoder as pure functions."""

    config: Config
    input_dim: int

    @property
    def output_dim(self) -> int:
        """Depth of an annotation."""
        return self.finals[-1].width

    @property
    def finals(self) -> tuple[FinalCarry, ...]:
        """What each layer ends with."""
        config = self.config
        return tuple(
            FinalCarry(config.readings(layer), config.hidden_dim, config.cell)
            for layer in range(config.num_layers)
        )

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether an annotation depends on what comes before it alone."""
        return self.config.direction == "forward"

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, input_dim, tree = self.config, self.input_dim, {}
        for layer, final in enumerate(self.finals):
            tree |= layer_parameters(
                layer, config.cell, final.readings, input_dim, config.hidden_dim
            )
            input_dim = final.width  # both directions side by side are read above
        return tree

    def encode(self, params: Params, embedded: Array, mask: Array, call: Call = Call()) -> Encoded:
        """Reads embedded tokens, layer by layer."""
        config = self.config
        # NaN at padding would come back through the gradients of the products.
        layer_input = jnp.where(mask[..., None], embedded, jnp.zeros((), embedded.dtype))
        finals = []
        for layer in range(config.num_layers):
            below = layer_input
            if layer:
                layer_input = drop_inputs(layer_input, config.dropout, layer, call)
            output, carries = read_layer(
                params, layer_input, mask, layer=layer, cell=config.cell,
                readings=config.readings(layer), recurrent_dropout=config.recurrent_dropout,
                call=call,
            )  # fmt: skip
            # Below is what was read before dropout; a layer of another depth has no residual
            # connection.
            if layer and config.residual and output.shape == below.shape:
                output = output + below
            layer_input = output
            finals.append(carries)
        return Encoded(layer_input, mask, tuple(finals))
