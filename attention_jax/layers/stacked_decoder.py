"""Decoders of stacked layers: how those start, and what they read, whose cells stand in a stack.

The lowest layer reads the embedded word, each other the one below it; `CellStack` has their steps.
A decoder of this kind says at which layer it attends, and who is told of what was found.
"""

import dataclasses
from typing import Any

from jax.typing import DTypeLike

from attention_jax.configuration import setting
from attention_jax.layers.bridges import BRIDGES, bridge_carries, bridge_parameters
from attention_jax.layers.cell_stack import CellStack
from attention_jax.layers.decoder import DecoderConfig, DecoderSizes, start_position
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.layers.mechanism import Mechanism
from attention_jax.layers.recurrent_decoder import RecurrentDecoder
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Params, State


@dataclasses.dataclass(frozen=True)
class StackedConfig(DecoderConfig):
    """Stacked decoder config: what those of its decoders share.

    Further fields are those of `layers.decoder.DecoderConfig`.

    Attributes:
      cell: `lstm` in the papers; also `gru` or `gru_reset_before`.
      hidden_dim: Depth of the state.
      num_layers: How many layers are stacked.
      bridge: What the state starts from.
      residual: Whether a layer from the second on adds its input to its output.
      dropout: Share of a layer's input that is dropped, from the second layer on, the same at
        all steps.
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
    """

    cell: str = setting("lstm", choices=CELLS)
    hidden_dim: int = setting(256, at_least=1)
    num_layers: int = setting(1, at_least=1)
    bridge: str = setting("last", choices=BRIDGES)
    residual: bool = setting(False)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)
    recurrent_dropout: float = setting(0.0, at_least=0.0, below=1.0)

    def __post_init__(self) -> None:
        """Rejects fields that would change nothing."""
        if self.num_layers == 1 and (self.dropout or self.residual):
            field = "dropout" if self.dropout else "residual"
            raise ValueError(f"{field}: expected more than one layer beside it, found one")


@dataclasses.dataclass(frozen=True)
class StackedDecoder(RecurrentDecoder):
    """Stacked recurrent decoder: its layers as pure functions, without an order of attention.

    Attributes:
      config: The decoder's.
      sizes: What it must fit.
      mechanism: How it attends to the source.
    """

    config: StackedConfig
    sizes: DecoderSizes
    mechanism: Mechanism

    @property
    def stack(self) -> CellStack:
        """The layers."""
        config = self.config
        return CellStack(
            config.cell, self.sizes.embedding_dim, config.hidden_dim, config.num_layers,
            config.residual, config.dropout, config.recurrent_dropout,
        )  # fmt: skip

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters: all that belongs to a layer is under its own name."""
        config = self.config
        bridge = bridge_parameters(
            config.bridge, self.sizes.encoders, config.cell, config.hidden_dim, config.num_layers
        )
        tree = {"attention": self.mechanism.parameters, "bridge": bridge}
        return {**tree, **self.stack.parameters}

    def first_state(self, params: Params, sources: Sources) -> State:
        """Starts from the bridge."""
        config = self.config
        carries = bridge_carries(
            config.bridge, params["bridge"], sources, config.cell, config.hidden_dim,
            config.num_layers,
        )  # fmt: skip
        # Under the names of the layers' parameters.
        state = {f"layer_{layer}": carry for layer, carry in enumerate(carries)}
        return {**state, "position": start_position(first_source(sources).mask.shape[0])}

    def dropout(self, call: Call, batch: int, dtype: DTypeLike) -> Any:
        """Draws the factors of each layer's input and hidden state."""
        return self.stack.draw(call, batch, dtype)

    def inputs(self, params: Params, embedded: Array) -> Gates:
        """Projects the previous words for the lowest layer."""
        return self.stack.inputs(params, embedded)
