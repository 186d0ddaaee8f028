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
from jax.typing import DTypeLike

from attention_jax.configuration import setting
from attention_jax.layers.bridges import BRIDGES, bridge_carries, bridge_parameters
from attention_jax.layers.cell_stack import CellStack
from attention_jax.layers.decoder import (
    Decoded,
    DecoderConfig,
    DecoderSizes,
    Told,
    counted,
    start_position,
)
from attention_jax.layers.encoder import Encoded, Sources, first_source
from attention_jax.layers.mechanism import Mechanism
from attention_jax.layers.parameters import Parameter, project
from attention_jax.layers.recurrent_decoder import ATTENTION_KEY, RecurrentDecoder
from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = "Luong, Pham and Manning (2015), section 3, eq. 5, and section 3.3"


@dataclasses.dataclass(frozen=True)
class Config(DecoderConfig):
    """Luong's decoder, which updates before it attends.

    Further fields are those of `layers.decoder.DecoderConfig`.

    Attributes:
      name: The decoder.
      cell: `lstm` in the paper; also `gru` or `gru_reset_before`.
      hidden_dim: Depth of the state (1000 in the paper).
      num_layers: How many layers are stacked (4 in the paper).
      attentional_dim: Depth of h~ (1000 in the paper).
      input_feeding: Whether h~ enters the next step.
      bridge: What the state starts from; `copy` in the paper.
      residual: Whether a layer from the second on adds its input to its output.
      dropout: Share of a layer's input that is dropped, from the second layer on, the same at
        all steps.
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
    """

    name: str = setting("luong")
    cell: str = setting("lstm", choices=CELLS)
    hidden_dim: int = setting(256, at_least=1)
    num_layers: int = setting(1, at_least=1)
    attentional_dim: int = setting(256, at_least=1)
    input_feeding: bool = setting(True)
    bridge: str = setting("last", choices=BRIDGES)
    residual: bool = setting(False)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)
    recurrent_dropout: float = setting(0.0, at_least=0.0, below=1.0)

    def __post_init__(self) -> None:
        """Rejects fields that would change nothing."""
        if self.num_layers == 1 and (self.dropout or self.residual):
            field = "dropout" if self.dropout else "residual"
            raise ValueError(f"{field}: expected more than one layer beside it, found one")


def build(config: Config, sizes: DecoderSizes, attention: Any) -> "LuongDecoder":
    """Builds the decoder around the mechanism that `attention` configures."""
    mechanism = sizes.mechanism(attention, config.hidden_dim, config.alignment_head)
    return LuongDecoder(config, sizes, mechanism)


@dataclasses.dataclass(frozen=True)
class LuongDecoder(RecurrentDecoder):
    """Luong's decoder as pure functions."""

    config: Config
    sizes: DecoderSizes
    mechanism: Mechanism

    @property
    def feature_dim(self) -> int:
        """Depth of the features."""
        return self.config.attentional_dim

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, depth = self.config, self.config.hidden_dim
        context_dim, feature_dim = self.mechanism.context_dim, self.feature_dim
        tree = {
            "attention": self.mechanism.parameters,
            "bridge": bridge_parameters(
                config.bridge, self.sizes.encoders, config.cell, depth, config.num_layers
            ),
            "combine": {
                "context": Parameter.of("kernel", context=context_dim, features=feature_dim),
                "state": Parameter.of("kernel", hidden=depth, features=feature_dim),
            },
        }
        tree |= self._stack.parameters
        if config.input_feeding:
            width = tree["layer_0"]["input"].shape[1]
            tree["layer_0"]["feed"] = Parameter.of("kernel", features=feature_dim, gates=width)
        return tree

    @property
    def _stack(self) -> CellStack:
        config = self.config
        return CellStack(
            config.cell, self.sizes.embedding_dim, config.hidden_dim, config.num_layers,
            config.residual, config.dropout, config.recurrent_dropout,
        )  # fmt: skip

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
        config, encoded = self.config, first_source(sources)
        batch = encoded.mask.shape[0]
        carries = bridge_carries(
            config.bridge,
            params["bridge"],
            sources,
            config.cell,
            config.hidden_dim,
            config.num_layers,
        )
        state = {f"layer_{layer}": carry for layer, carry in enumerate(carries)}
        if config.input_feeding:
            dtype = encoded.annotations.dtype
            state["attentional"] = jnp.zeros((batch, config.attentional_dim), dtype)
        return {**state, "position": start_position(batch)}

    def dropout(self, call: Call, batch: int, dtype: DTypeLike) -> Any:
        """Draws the factors of each layer's input and hidden state."""
        return self._stack.draw(call, batch, dtype)

    def inputs(self, params: Params, embedded: Array) -> Gates:
        """Projects the previous words for the lowest layer."""
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
        dropout = self.dropout(call, embedded.shape[0], embedded.dtype)
        inputs = self.inputs(params, jnp.swapaxes(embedded, 0, 1))

        def step(constants: Any, state: State, inputs: Gates) -> tuple[State, Array]:
            return self._update(*constants, state, inputs)

        # The recurrence carries the layers alone: this attention has no state.
        layers = {name: value for name, value in state.items() if name != "attention"}
        layers, queries = deferred_scan(step, (params, dropout), layers, inputs)
        queries = jnp.swapaxes(queries, 0, 1)  # T B D -> B T D
        attention, after = self.mechanism.attend(
            params["attention"], queries, memory,
            mask=call.mask_of("attention"), call=call.fold(ATTENTION_KEY),
        )  # fmt: skip
        state = {**layers, "attention": after}
        return Decoded(self._combine(params, queries, attention.context), attention, state)

    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Returns the attentional state h~."""
        if "attentional" in outputs:
            return outputs["attentional"]
        return self._combine(params, outputs["state"], outputs["attention"].context)

    def _update(
        self, params: Params, dropout: Any, state: State, gates: Gates
    ) -> tuple[State, Array]:
        if self.config.input_feeding:
            # The concatenation [E y; h~] is never formed, only the sum of two products.
            fed = state["attentional"] @ params["layer_0"]["feed"]
            gates = tuple(map(jnp.add, gates, CELLS[self.config.cell].split(fed)))
        carries, output = self._stack.step(params, dropout, state, gates)
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
