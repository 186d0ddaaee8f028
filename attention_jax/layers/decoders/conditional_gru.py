"""The conditional GRU: two half-steps with attention between them.

  s'_i = cell_1(s_{i-1}, E y_{i-1});   c_i = attend(s'_i);   s_i = cell_2(s'_i, c_i)
  features = deep output of (s_i, E y_{i-1}, c_i)

The query has seen the previous word.
"""

import dataclasses
from typing import Any

from jax.typing import DTypeLike

from attention_jax.configuration import setting
from attention_jax.layers.bridges import BRIDGES, bridge_carries, bridge_parameters
from attention_jax.layers.cells import cell_parameters
from attention_jax.layers.decoder import DecoderConfig, DecoderSizes, counted, start_position
from attention_jax.layers.deep_output import READOUTS, deep_output, deep_parameters
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.layers.mechanism import Mechanism
from attention_jax.layers.parameters import project
from attention_jax.layers.recurrent_decoder import RecurrentDecoder
from attention_jax.ops.dropout import dropout_factors
from attention_jax.ops.products import add_bias
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = "Sennrich et al. (2017), Nematus, section 2; Firat and Cho (2016), dl4mt-tutorial, cgru"
_CELLS = ("gru", "gru_reset_before")


@dataclasses.dataclass(frozen=True)
class Config(DecoderConfig):
    """The conditional GRU.

    Further fields are those of `layers.decoder.DecoderConfig`.

    Attributes:
      name: The decoder.
      cell: Of both half-steps: `gru` as in the tutorial, or `gru_reset_before`.
      hidden_dim: Depth of the state.
      bridge: What the state starts from.
      readout: `tanh` as in the tutorial, or `maxout`.
      readout_dim: Depth of the features.
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
    """

    name: str = setting("conditional_gru")
    cell: str = setting("gru", choices=_CELLS)
    hidden_dim: int = setting(256, at_least=1)
    bridge: str = setting("mean", choices=BRIDGES)
    readout: str = setting("tanh", choices=READOUTS)
    readout_dim: int = setting(128, at_least=1)
    recurrent_dropout: float = setting(0.0, at_least=0.0, below=1.0)


def build(config: Config, sizes: DecoderSizes, attention: Any) -> "ConditionalGru":
    """Builds the decoder around the mechanism that `attention` configures."""
    mechanism = sizes.mechanism(attention, config.hidden_dim, config.alignment_head)
    return ConditionalGru(config, sizes, mechanism)


@dataclasses.dataclass(frozen=True)
class ConditionalGru(RecurrentDecoder):
    """Conditional GRU as pure functions."""

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
        config, embedding_dim = self.config, self.sizes.embedding_dim
        depth, context_dim = config.hidden_dim, self.mechanism.context_dim
        return {
            "attention": self.mechanism.parameters,
            "bridge": bridge_parameters(config.bridge, self.sizes.encoders, config.cell, depth, 1),
            "first": cell_parameters(config.cell, embedding_dim, depth),
            "second": cell_parameters(config.cell, context_dim, depth),
            "readout": deep_parameters(
                config.readout, config.readout_dim, depth, embedding_dim, context_dim
            ),
        }

    def first_state(self, params: Params, sources: Sources) -> State:
        """Starts from the bridge."""
        config = self.config
        (carry,) = bridge_carries(
            config.bridge, params["bridge"], sources, config.cell, config.hidden_dim, 1
        )
        return {"carry": carry, "position": start_position(first_source(sources).mask.shape[0])}

    def dropout(self, call: Call, batch: int, dtype: DTypeLike) -> Any:
        """Draws the hidden state's factors, for each half-step."""
        shape, rate = (batch, self.config.hidden_dim), self.config.recurrent_dropout
        return [dropout_factors(call.fold(half), rate, shape, dtype) for half in (0, 1)]

    def inputs(self, params: Params, embedded: Array) -> Gates:
        """Projects the previous words for the first half-step."""
        cell = CELLS[self.config.cell]
        return cell.split(add_bias(embedded @ params["first"]["input"], params["first"]["bias"]))

    def advance(
        self,
        params: Params,
        memory: Memory,
        dropout: Any,
        state: State,
        inputs: Gates,
        call: Call = Call(),
    ) -> tuple[State, dict[str, Any]]:
        """Takes both half-steps, with attention between them."""
        cell = CELLS[self.config.cell]
        # A search drops nothing, and passes None for all.
        keep_first, keep_second = dropout or (None, None)
        half = cell.step(params["first"], state["carry"], inputs, keep_first)  # s', which asks
        attention, attention_state = self.attend(params, half["hidden"], memory, state, call)
        second = params["second"]
        # The second half-step reads the context where the first reads the word.
        gates = cell.split(
            add_bias(project(attention.context, second.get("input")), second["bias"])
        )
        carry = cell.step(second, half, gates, keep_second)
        outputs = {"attention": attention, "state": carry["hidden"]}
        new = {"carry": carry, "position": counted(state), "attention": attention_state}
        return new, outputs

    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Reads features off the state, the previous word and the context."""
        context = outputs["attention"].context
        return deep_output(
            self.config.readout, params["readout"], outputs["state"], embedded, context
        )
