"""The decoder of Luong et al. 2015: update, attend, and feed the result back.

  h_t = stack of cells(h_{t-1}, [E y_{t-1}; h~_{t-1}])
  h~_t = tanh(W_c [c_t; h_t]), with c_t = attend(h_t)

With input feeding, h~ enters the next step; without, nothing that the attention finds is needed
inside the recurrence, and all queries are answered at once after it.

Contexts are only ever multiplied by W_c. With a single head the values are therefore multiplied
by it once for the source, and what the attention returns as context is W_c c_t.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.decoder import Decoded, DecoderSizes, Told, counted
from attention_jax.layers.encoder import Encoded, Sources, first_source
from attention_jax.layers.parameters import Parameter, project
from attention_jax.layers.stacked_decoder import StackedConfig, StackedDecoder
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = "Luong, Pham and Manning (2015), section 3, eq. 5, and section 3.3"


@dataclasses.dataclass(frozen=True)
class Config(StackedConfig):
    """Luong's decoder, which updates before it attends.

    Further fields are those of `layers.stacked_decoder.StackedConfig`. In the paper there are 4
    layers of depth 1000, and the bridge is `copy`.

    Attributes:
      name: The decoder.
      attentional_dim: Depth of h~ (1000 in the paper).
      input_feeding: Whether h~ enters the next step.
    """

    name: str = setting("luong")
    attentional_dim: int = setting(256, at_least=1)
    input_feeding: bool = setting(True)


def build(config: Config, sizes: DecoderSizes, attention: Any) -> "LuongDecoder":
    """Builds the decoder around the mechanism that `attention` configures."""
    mechanism = sizes.mechanism(attention, config.hidden_dim, config.alignment_head)
    return LuongDecoder(config, sizes, mechanism)


@dataclasses.dataclass(frozen=True)
class LuongDecoder(StackedDecoder):
    """Luong's decoder as pure functions."""

    config: Config

    @property
    def feature_dim(self) -> int:
        """Depth of the features."""
        return self.config.attentional_dim

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        tree, depth, feature_dim = super().parameters, self.config.hidden_dim, self.feature_dim
        context_dim = self.mechanism.context_dim
        layers = {name: tree.pop(name) for name in self.stack.parameters}
        tree["combine"] = {
            "context": Parameter.of("kernel", context=context_dim, features=feature_dim),
            "state": Parameter.of("kernel", hidden=depth, features=feature_dim),
        }
        tree |= layers  # last, so that seeds keep their meaning: parameters are drawn in order
        if self.config.input_feeding:
            width = tree["layer_0"]["input"].shape[1]
            tree["layer_0"]["feed"] = Parameter.of("kernel", features=feature_dim, gates=width)
        return tree

    @property
    def _projects_values(self) -> bool:
        return self.mechanism.averages_values

    def memory(self, params: Params, sources: Sources) -> Memory:
        """Prepares the sources, with values already multiplied by W_c where that is the same."""
        if self._projects_values:
            kernel = params["combine"]["context"]
            sources = {name: _multiplied(encoded, kernel) for name, encoded in sources.items()}
        return super().memory(params, sources)

    def first_state(self, params: Params, sources: Sources) -> State:
        """Starts from the bridge, with zeros to feed."""
        state, encoded = super().first_state(params, sources), first_source(sources)
        if self.config.input_feeding:
            # Before the first token nothing has been attended to that could be fed.
            shape = (encoded.mask.shape[0], self.config.attentional_dim)
            state["attentional"] = jnp.zeros(shape, encoded.annotations.dtype)
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
        """Updates the layers, then attends."""
        new, query = self._update(params, dropout, state, inputs)
        attention, new["attention"] = self.attend(params, query, memory, state, call)
        outputs = {"attention": attention, "state": query}
        if self.config.input_feeding:
            outputs["attentional"] = self._combine(params, query, attention.context)
            new["attentional"] = outputs["attentional"]
        return new, outputs

    def run(
        self,
        params: Params,
        memory: Memory,
        state: State,
        embedded: Array,
        *,
        told: Told = {},  # noqa: B006  (never changed)
        mask: Array | None = None,
        call: Call = Call(),
    ) -> Decoded:
        """Teacher forcing: decodes known targets, with attention after the recurrence if it can."""
        # Both need the answer to one query before the next can be asked.
        if self.config.input_feeding or not self.mechanism.is_parallel:
            return super().run(params, memory, state, embedded, told=told, mask=mask, call=call)
        queries, attention, state = self.ask_afterwards(
            self._update, params, memory, state, embedded, call
        )
        return Decoded(self._combine(params, queries, attention.context), attention, state)

    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Returns the attentional state h~."""
        if "attentional" in outputs:
            return outputs["attentional"]  # made already, to be fed
        return self._combine(params, outputs["state"], outputs["attention"].context)

    def _update(
        self, params: Params, dropout: Any, state: State, gates: Gates
    ) -> tuple[State, Array]:
        if self.config.input_feeding:
            # The concatenation [E y; h~] is never formed, only the sum of two products.
            product = state["attentional"] @ params["layer_0"]["feed"]
            gates = CELLS[self.config.cell].fed(gates, product)
        carries, output = self.stack.step(params, dropout, state, gates)
        return {"position": counted(state), **carries}, output

    def _combine(self, params: Params, query: Array, context: Array) -> Array:
        if not self._projects_values:
            # Otherwise the values were multiplied by W_c already, and so is their average.
            context = project(context, params["combine"].get("context"))
        return jnp.tanh(context + query @ params["combine"]["state"])


def _multiplied(encoded: Encoded, kernel: Array) -> Encoded:
    """Returns a source whose values, and their summary, are multiplied by a kernel."""
    # Attention `none` averages nothing: its context is the summary, which W_c meets here.
    aux = {**encoded.aux, "summary": encoded.summary @ kernel}
    return dataclasses.replace(encoded, values=encoded.averaged @ kernel, aux=aux)
