"""The speller of listen, attend and spell: updates with the last symbol and context, then attends.

  s_i = stack of cells(s_{i-1}, [E y_{i-1}; c_{i-1}]),   c_0 = 0
  c_i = attend(s_i)
  features = tanh(W_s s_i + W_c c_i + b)

The order is that of Luong et al. (2015), whose decoder feeds back the attentional state instead of
the context itself.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax.typing import DTypeLike

from attention_jax.configuration import setting
from attention_jax.layers.bridges import BRIDGES, bridge_carries, bridge_parameters
from attention_jax.layers.cell_stack import CellStack
from attention_jax.layers.decoder import DecoderConfig, DecoderSizes, counted, start_position
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.layers.mechanism import Mechanism
from attention_jax.layers.parameters import Parameter, project
from attention_jax.layers.recurrent_decoder import RecurrentDecoder
from attention_jax.ops.products import add_bias
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = "Chan, Jaitly, Le and Vinyals (2016), Listen, attend and spell, section 3.2, eq. 6 to 8"


@dataclasses.dataclass(frozen=True)
class Config(DecoderConfig):
    """The speller, to which the last context is fed.

    Further fields are those of `layers.decoder.DecoderConfig`.

    Attributes:
      name: The decoder.
      cell: `lstm` in the paper; also `gru` or `gru_reset_before`.
      hidden_dim: Depth of the state (512 in the paper).
      num_layers: How many layers are stacked (2 in the paper).
      readout_dim: Depth of the features.
      bridge: What the state starts from.
      dropout: Share of a layer's input that is dropped, from the second layer on, the same at all
        steps.
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
    """

    name: str = setting("speller")
    cell: str = setting("lstm", choices=CELLS)
    hidden_dim: int = setting(256, at_least=1)
    num_layers: int = setting(1, at_least=1)
    readout_dim: int = setting(128, at_least=1)
    bridge: str = setting("zero", choices=BRIDGES)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)
    recurrent_dropout: float = setting(0.0, at_least=0.0, below=1.0)

    def __post_init__(self) -> None:
        """Rejects a field that would change nothing."""
        if self.num_layers == 1 and self.dropout:
            raise ValueError("dropout: expected more than one layer beside it, found one")


def build(config: Config, sizes: DecoderSizes, attention: Any) -> "Speller":
    """Builds the decoder around the mechanism that `attention` configures."""
    mechanism = sizes.mechanism(attention, config.hidden_dim, config.alignment_head)
    return Speller(config, sizes, mechanism)


@dataclasses.dataclass(frozen=True)
class Speller(RecurrentDecoder):
    """The speller as pure functions."""

    config: Config
    sizes: DecoderSizes
    mechanism: Mechanism

    @property
    def feature_dim(self) -> int:
        """Depth of the features."""
        return self.config.readout_dim

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, context_dim = self.config, self.mechanism.context_dim
        depth, features = config.hidden_dim, config.readout_dim
        layers = self._stack.parameters
        # The lowest cell reads [E y; c]; this is the context's part of its input kernel.
        width = layers["layer_0"]["input"].shape[1]
        layers["layer_0"]["context"] = Parameter.of("kernel", context=context_dim, gates=width)
        return {
            "attention": self.mechanism.parameters,
            "bridge": bridge_parameters(
                config.bridge, self.sizes.encoders, config.cell, depth, config.num_layers
            ),
            **layers,
            "readout": {
                "state": Parameter.of("kernel", hidden=depth, features=features),
                "context": Parameter.of("kernel", context=context_dim, features=features),
                "bias": Parameter.of("bias", features=features),
            },
        }

    @property
    def _stack(self) -> CellStack:
        config = self.config
        return CellStack(
            config.cell, self.sizes.embedding_dim, config.hidden_dim, config.num_layers,
            dropout=config.dropout, recurrent_dropout=config.recurrent_dropout,
        )  # fmt: skip

    def first_state(self, params: Params, sources: Sources) -> State:
        """Starts from the bridge, having read nothing."""
        config, encoded = self.config, first_source(sources)
        batch = encoded.mask.shape[0]
        carries = bridge_carries(
            config.bridge, params.get("bridge", {}), sources, config.cell, config.hidden_dim,
            config.num_layers,
        )  # fmt: skip
        state = {f"layer_{layer}": carry for layer, carry in enumerate(carries)}
        state["context"] = jnp.zeros((batch, self.mechanism.context_dim), encoded.annotations.dtype)
        return {**state, "position": start_position(batch)}

    def dropout(self, call: Call, batch: int, dtype: DTypeLike) -> Any:
        """Draws the factors of each layer's input and hidden state."""
        return self._stack.draw(call, batch, dtype)

    def inputs(self, params: Params, embedded: Array) -> Gates:
        """Projects the previous symbols for the lowest layer."""
        return self._stack.inputs(params, embedded)

    def advance(
        self,
        params: Params,
        memory: Memory,
        dropout: Any,
        state: State,
        inputs: Gates,
        call: Call = Call(),
    ) -> tuple[State, dict[str, Any]]:
        """Updates the layers with the last context, then attends."""
        gates = inputs
        if "context" in params["layer_0"]:
            # No kernel was declared for contexts without depth, as with attention `none`.
            fed = state["context"] @ params["layer_0"]["context"]
            gates = tuple(map(jnp.add, gates, CELLS[self.config.cell].split(fed)))
        carries, query = self._stack.step(params, dropout, state, gates)
        attention, attention_state = self.attend(params, query, memory, state, call)
        new = {
            **carries,
            "context": attention.context,
            "position": counted(state),
            "attention": attention_state,
        }
        return new, {"attention": attention, "state": query}

    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Reads features off the state and the context, for all steps at once."""
        weights, context = params["readout"], outputs["attention"].context
        hidden = outputs["state"] @ weights["state"] + project(context, weights.get("context"))
        return jnp.tanh(add_bias(hidden, weights["bias"]))
