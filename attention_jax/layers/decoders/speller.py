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

from attention_jax.configuration import setting
from attention_jax.layers.bridges import BRIDGES
from attention_jax.layers.decoder import DecoderSizes, counted
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.layers.parameters import Parameter, project
from attention_jax.layers.stacked_decoder import StackedConfig, StackedDecoder
from attention_jax.ops.products import add_bias
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = "Chan, Jaitly, Le and Vinyals (2016), Listen, attend and spell, section 3.2, eq. 6 to 8"


@dataclasses.dataclass(frozen=True)
class Config(StackedConfig):
    """The speller, to which the last context is fed.

    Further fields are those of `layers.stacked_decoder.StackedConfig`. In the paper there are 2
    layers of depth 512, without residual connections.

    Attributes:
      name: The decoder.
      readout_dim: Depth of the features.
      bridge: What the state starts from.
    """

    name: str = setting("speller")
    readout_dim: int = setting(128, at_least=1)
    bridge: str = setting("zero", choices=BRIDGES)


def build(config: Config, sizes: DecoderSizes, attention: Any) -> "Speller":
    """Builds the decoder around the mechanism that `attention` configures."""
    mechanism = sizes.mechanism(attention, config.hidden_dim, config.alignment_head)
    return Speller(config, sizes, mechanism)


@dataclasses.dataclass(frozen=True)
class Speller(StackedDecoder):
    """The speller as pure functions."""

    config: Config

    @property
    def feature_dim(self) -> int:
        """Depth of the features."""
        return self.config.readout_dim

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        tree, context_dim = super().parameters, self.mechanism.context_dim
        depth, features = self.config.hidden_dim, self.config.readout_dim
        # The lowest cell reads [E y; c]; this is the context's part of its input kernel.
        width = tree["layer_0"]["input"].shape[1]
        tree["layer_0"]["context"] = Parameter.of("kernel", context=context_dim, gates=width)
        tree["readout"] = {
            "state": Parameter.of("kernel", hidden=depth, features=features),
            "context": Parameter.of("kernel", context=context_dim, features=features),
            "bias": Parameter.of("bias", features=features),
        }
        return tree

    def first_state(self, params: Params, sources: Sources) -> State:
        """Starts from the bridge, having read nothing."""
        state, encoded = super().first_state(params, sources), first_source(sources)
        shape = (encoded.mask.shape[0], self.mechanism.context_dim)
        state["context"] = jnp.zeros(shape, encoded.annotations.dtype)
        return state

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
            product = state["context"] @ params["layer_0"]["context"]
            gates = CELLS[self.config.cell].fed(gates, product)
        carries, query = self.stack.step(params, dropout, state, gates)
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
