"""Recurrent encoders: from embedded tokens to one annotation for each.

Annotations stand at their tokens' places whatever the direction of reading; `backward` is the
paper's reversed source with its annotations put back in order.
"""

import dataclasses
import itertools
from typing import Any

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Bool, Float

from attention_jax.configuration import setting
from attention_jax.layers.dropout import dropout_factors, fold, scale
from attention_jax.layers.parameters import Initialization, Parameter, declare
from attention_jax.ops.recurrent import CELLS, run_cell
from attention_jax.types import Array, Leaf, Params, State

_READINGS = {
    "forward": ("forward",),
    "backward": ("backward",),
    "bidirectional": ("forward", "backward"),
}


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """A recurrent encoder.

    Attributes:
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

    cell: str = setting("gru", choices=CELLS)
    hidden_dim: int = setting(256, at_least=1)
    num_layers: int = setting(1, at_least=1)
    direction: str = setting("bidirectional", choices=_READINGS)
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
        return _READINGS[self.direction]

    @property
    def output_dim(self) -> int:
        """Depth of an annotation."""
        return self.hidden_dim * len(self.readings(self.num_layers - 1))


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Encoded:
    """An encoded source.

    Attributes:
      annotations: `B S D`, zero at padding.
      mask: `B S`, True at real tokens.
      finals: For each layer, for each direction in which it reads, the final carry.
    """

    annotations: Leaf
    mask: Leaf
    finals: tuple[dict[str, State], ...]

    @property
    def summary(self) -> Array:
        """`B D`: the final hidden states of the top layer's directions, side by side."""
        return self.final_entry(len(self.finals) - 1, "hidden")

    def final_entry(self, layer: int, entry: str) -> Array:
        """Joins one entry of the final carries of a layer's directions."""
        finals = self.finals[layer]
        # Forward first: tree transformations sort a dict's keys.
        readings = [reading for reading in ("forward", "backward") if reading in finals]
        return jnp.concatenate([finals[reading][entry] for reading in readings], axis=-1)


def encoder_parameters(config: EncoderConfig, input_dim: int) -> dict[str, Any]:
    """Returns the parameters of a recurrent encoder."""
    depth, tree = config.hidden_dim, {}
    for layer in range(config.num_layers):
        for reading in config.readings(layer):
            tree[f"layer_{layer}_{reading}"] = cell_parameters(config.cell, input_dim, depth)
        input_dim = depth * len(config.readings(layer))
    return tree


def cell_parameters(name: str, input_dim: int, depth: int) -> dict[str, Parameter]:
    """Returns the parameters of a cell: its input kernel and what its step reads."""
    width = CELLS[name].num_gates * depth
    parameters = {
        "input": Parameter((input_dim, width)),
        "recurrent": Parameter((depth, width), "recurrent"),
        "bias": Parameter((width,), "forget_bias" if name == "lstm" else "bias"),
    }
    if name == "gru":
        parameters["candidate_bias"] = Parameter((depth,), "bias")
    return parameters


def encode(
    config: EncoderConfig,
    params: Params,
    embedded: Float[Array, "B S E"],
    mask: Bool[Array, "B S"],
    *,
    rng: Array | None = None,
    train: bool = False,
) -> Encoded:
    """Reads embedded tokens `B S E`, of which those under `mask` are real.

    Args:
      config: The encoder.
      params: Its parameters, as `encoder_parameters` describes them.
      embedded: Embedded tokens; NaN at padding changes nothing.
      mask: `B S`, True at real tokens.
      rng: Key for dropout.
      train: Whether dropout is on.

    Returns:
      Annotations and final carries.
    """
    layer_input = jnp.where(mask[..., None], embedded, jnp.zeros((), embedded.dtype))
    cell, finals = CELLS[config.cell], []
    batch, dtype = embedded.shape[0], embedded.dtype
    for layer in range(config.num_layers):
        if layer:
            rate = config.dropout
            factors = dropout_factors(fold(rng, 3 * layer), rate, layer_input.shape, dtype, train)
            layer_input = scale(layer_input, factors)
        outputs, carries = [], {}
        for side, reading in enumerate(config.readings(layer)):
            weights = params[f"layer_{layer}_{reading}"]
            keep = dropout_factors(
                fold(rng, 3 * layer + 1 + side),
                config.recurrent_dropout,
                (batch, config.hidden_dim),
                dtype,
                train,
            )
            # Projected time-major: the narrow input is transposed instead of the wide gates.
            by_time = jnp.swapaxes(layer_input, 0, 1)
            projected = jnp.swapaxes(by_time @ weights["input"] + weights["bias"], 0, 1)
            is_backward = reading == "backward"
            hidden, final = run_cell(cell, weights, projected, mask, reverse=is_backward, keep=keep)
            outputs.append(hidden)
            carries[reading] = final
        output = jnp.concatenate(outputs, axis=-1)
        if layer and config.residual and output.shape == layer_input.shape:
            output = output + layer_input
        layer_input = output
        finals.append(carries)
    return Encoded(layer_input, mask, tuple(finals))


class Encoder(nn.Module):
    """A recurrent encoder's parameters.

    Attributes:
      config: The encoder.
      input_dim: Depth of an embedded token.
      initialization: How parameters start.
    """

    config: EncoderConfig
    input_dim: int
    initialization: Initialization

    def setup(self) -> None:
        """Declares the parameters."""
        tree = encoder_parameters(self.config, self.input_dim)
        self.weights = declare(self, tree, self.initialization)

    def __call__(
        self, embedded: Array, mask: Array, *, rng: Array | None = None, train: bool = False
    ) -> Encoded:
        """Reads embedded tokens; see `encode`."""
        return encode(self.config, self.weights, embedded, mask, rng=rng, train=train)
