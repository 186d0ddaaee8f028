"""Stacked recurrent cells, step by step: each layer reads the one below it."""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax.typing import DTypeLike

from attention_jax.layers.cells import cell_parameters
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.products import add_bias
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Params, State


@dataclasses.dataclass(frozen=True)
class CellStack:
    """Stacked cells as pure functions; parameters and carries are under `layer_0` and so on.

    Attributes:
      cell: Which cell.
      input_dim: Depth of what the lowest layer reads.
      hidden_dim: Depth of all layers.
      num_layers: How many there are.
      residual: Whether a layer from the second on adds its input to its output.
      dropout: Share of a layer's input that is dropped, from the second layer on, the same at all
        steps.
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
    """

    cell: str
    input_dim: int
    hidden_dim: int
    num_layers: int
    residual: bool = False
    dropout: float = 0.0
    recurrent_dropout: float = 0.0

    @property
    def parameters(self) -> dict[str, Any]:
        """The layers' parameters."""
        depth = self.hidden_dim
        return {
            f"layer_{layer}": cell_parameters(self.cell, depth if layer else self.input_dim, depth)
            for layer in range(self.num_layers)
        }

    def draw(self, call: Call, batch: int, dtype: DTypeLike) -> list[list[Array | None]]:
        """Draws the factors of each layer's input and hidden state."""
        shape, hidden_rate = (batch, self.hidden_dim), self.recurrent_dropout
        return [
            [
                dropout_factors(call.fold(2 * layer + place), rate, shape, dtype)
                # What the lowest layer reads has a dropout of its own.
                for place, rate in enumerate((self.dropout if layer else 0.0, hidden_rate))
            ]
            for layer in range(self.num_layers)
        ]

    def inputs(self, params: Params, vectors: Array) -> Gates:
        """Projects what the lowest layer reads, for any number of steps at once."""
        weights = params["layer_0"]
        return CELLS[self.cell].split(add_bias(vectors @ weights["input"], weights["bias"]))

    def step(
        self, params: Params, dropout: Any, carries: State, gates: Gates
    ) -> tuple[State, Array]:
        """Advances all layers.

        Args:
          params: The layers' parameters.
          dropout: What `draw` returned, or None.
          carries: The layers' carries before; other entries are not looked at.
          gates: The lowest layer's projected input.

        Returns:
          (carries, output of the top layer).
        """
        cell, new = CELLS[self.cell], {}
        output = jnp.zeros(())
        for layer in range(self.num_layers):
            weights, name = params[f"layer_{layer}"], f"layer_{layer}"
            keep_input, keep_hidden = dropout[layer] if dropout else (None, None)
            below = output
            if layer:
                product = scale(below, keep_input) @ weights["input"]
                gates = cell.split(add_bias(product, weights["bias"]))
            new[name] = cell.step(weights, carries[name], gates, keep_hidden)
            output = new[name]["hidden"]
            if layer and self.residual:
                output = output + below
        return new, output
