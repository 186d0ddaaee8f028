"""The decoder of Bahdanau et al. 2015: attend with the previous state, then update it.

  c_i = attend(s_{i-1});   s_i = cell(s_{i-1}, [E y_{i-1}; c_i])
  features = deep output of (state, E y_{i-1}, c_i)

The paper is at odds with itself about the readout's state, and with its program about the order:

  main_text   g(y_{i-1}, s_i, c_i), section 3.1
  appendix    the readout sees s_{i-1}, appendix A.2.2
  groundhog   the program: the state consumes y_{i-1} together with the context that predicted
              it, then attends and is read; at the first step nothing is consumed, and the
              readout sees no previous word
"""

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax.typing import DTypeLike

from attention_jax.configuration import setting
from attention_jax.layers.bridges import BRIDGES, bridge_carries, bridge_parameters
from attention_jax.layers.cells import cell_parameters
from attention_jax.layers.decoder import DecoderConfig, DecoderSizes, counted, start_position
from attention_jax.layers.deep_output import READOUTS, deep_output, deep_parameters
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.layers.mechanism import Mechanism
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.recurrent_decoder import RecurrentDecoder
from attention_jax.ops.dropout import dropout_factors
from attention_jax.ops.products import add_bias
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = "Bahdanau, Cho and Bengio (2015), section 3.1, appendix A.1.2 and A.2.2"


@dataclasses.dataclass(frozen=True)
class Config(DecoderConfig):
    """Bahdanau's decoder, which attends before it updates.

    Further fields are those of `layers.decoder.DecoderConfig`.

    Attributes:
      name: The decoder.
      cell: `gru_reset_before` in the paper; also `gru` or `lstm`.
      hidden_dim: Depth of the state (1000 in the paper).
      bridge: What the state starts from.
      variant: `main_text`, `appendix` or `groundhog`; see above.
      readout: `maxout` as in the paper, or `tanh`.
      readout_dim: Depth of the features (500 in the paper).
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
    """

    name: str = setting("bahdanau")
    cell: str = setting("gru_reset_before", choices=CELLS)
    hidden_dim: int = setting(256, at_least=1)
    bridge: str = setting("backward", choices=BRIDGES)
    variant: str = setting("main_text", choices=("main_text", "appendix", "groundhog"))
    readout: str = setting("maxout", choices=READOUTS)
    readout_dim: int = setting(128, at_least=1)
    recurrent_dropout: float = setting(0.0, at_least=0.0, below=1.0)


def build(config: Config, sizes: DecoderSizes, attention: Any) -> "BahdanauDecoder":
    """Builds the decoder around the mechanism that `attention` configures."""
    mechanism = sizes.mechanism(attention, config.hidden_dim, config.alignment_head)
    return BahdanauDecoder(config, sizes, mechanism)


@dataclasses.dataclass(frozen=True)
class BahdanauDecoder(RecurrentDecoder):
    """Bahdanau's decoder as pure functions."""

    config: Config
    sizes: DecoderSizes
    mechanism: Mechanism

    @property
    def feature_dim(self) -> int:
        """Depth of the features."""
        return self.config.readout_dim

    @property
    def provides(self) -> tuple[str, ...]:  # type: ignore[override]
        """What may be asked of it: in other variants a query has not read the last word."""
        return ("last_word",) if self.config.variant == "groundhog" else ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, embedding_dim = self.config, self.sizes.embedding_dim
        context_dim = self.mechanism.context_dim
        cell = cell_parameters(config.cell, embedding_dim, config.hidden_dim)
        width = cell["input"].shape[1]
        # The cell reads [E y; c]; this is the context's part of its input kernel.
        cell["context"] = Parameter.of("kernel", context=context_dim, gates=width)
        return {
            "attention": self.mechanism.parameters,
            "bridge": bridge_parameters(
                config.bridge, self.sizes.encoders, config.cell, config.hidden_dim, 1
            ),
            "cell": cell,
            "readout": deep_parameters(
                config.readout, config.readout_dim, config.hidden_dim, embedding_dim, context_dim
            ),
        }

    def first_state(self, params: Params, sources: Sources) -> State:
        """Starts from the bridge."""
        config, encoded = self.config, first_source(sources)
        batch = encoded.mask.shape[0]
        (carry,) = bridge_carries(
            config.bridge, params["bridge"], sources, config.cell, config.hidden_dim, 1
        )
        state = {"carry": carry, "position": start_position(batch)}
        if config.variant == "groundhog":
            context_dim = self.mechanism.context_dim
            state["context"] = jnp.zeros((batch, context_dim), encoded.annotations.dtype)
        return state

    def dropout(self, call: Call, batch: int, dtype: DTypeLike) -> Any:
        """Draws the hidden state's factors."""
        shape = (batch, self.config.hidden_dim)
        return dropout_factors(call, self.config.recurrent_dropout, shape, dtype)

    def inputs(self, params: Params, embedded: Array) -> Gates:
        """Projects the previous words for the gates."""
        cell = CELLS[self.config.cell]
        return cell.split(add_bias(embedded @ params["cell"]["input"], params["cell"]["bias"]))

    def advance(
        self,
        params: Params,
        memory: Memory,
        dropout: Any,
        state: State,
        inputs: Gates,
        call: Call = Call(),
    ) -> tuple[State, dict[str, Any]]:
        """Attends and updates the state, in the order of the variant."""
        if self.config.variant == "groundhog":
            return self._advance_groundhog(params, memory, dropout, state, inputs, call)
        previous = state["carry"]
        attention, attention_state = self.attend(params, previous["hidden"], memory, state, call)
        # Only now the word before is read: the query has not known it.
        carry = self._update(params, previous, inputs, attention.context, dropout)
        # Which state the readout sees: s_i of section 3.1, or s_{i-1} of appendix A.2.2.
        read = carry if self.config.variant == "main_text" else previous
        outputs = {"attention": attention, "state": read["hidden"]}
        new = {"carry": carry, "position": counted(state), "attention": attention_state}
        return new, outputs

    def _advance_groundhog(
        self,
        params: Params,
        memory: Memory,
        dropout: Any,
        state: State,
        inputs: Gates,
        call: Call,
    ) -> tuple[State, dict[str, Any]]:
        # Selected, not branched on: a scan compiles one body for all of its steps.
        is_first = (state["position"] == 0)[..., None]
        updated = self._update(params, state["carry"], inputs, state["context"], dropout)
        # Nothing is consumed at the first step: the bridge's state itself asks.
        carry = {name: jnp.where(is_first, state["carry"][name], updated[name]) for name in updated}
        attention, attention_state = self.attend(params, carry["hidden"], memory, state, call)
        outputs = {"attention": attention, "state": carry["hidden"], "is_first": is_first}
        new = {
            "carry": carry,
            "context": attention.context,  # consumed together with the word that it predicts
            "position": counted(state),
            "attention": attention_state,
        }
        return new, outputs

    def _update(
        self, params: Params, carry: State, inputs: Gates, context: Array, dropout: Any
    ) -> State:
        cell, gates = CELLS[self.config.cell], inputs
        if "context" in params["cell"]:
            # No kernel was declared for contexts without depth, as with attention `none`.
            gates = cell.fed(gates, context @ params["cell"]["context"])
        return cell.step(params["cell"], carry, gates, dropout)

    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Reads features off the state, the previous word and the context."""
        if "is_first" in outputs:
            # The program's readout of the first word sees no word before it, not even BOS.
            embedded = jnp.where(outputs["is_first"], jnp.zeros((), embedded.dtype), embedded)
        context = outputs["attention"].context
        return deep_output(
            self.config.readout, params["readout"], outputs["state"], embedded, context
        )
