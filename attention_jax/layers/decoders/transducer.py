"""The decoder of neural transducers: it reads the target alone, and asks what it could attend to.

  h_t = stack of cells(h_{t-1}, E y_{t-1});   features = h_t
  scores[t, s] = score(h_t, annotation_s)

Nothing that is attended to comes back: neither states nor features depend on where a token was
written from. That makes sums over alignments exact, which are the readout's to take. In an RNN
transducer this is the prediction network.
"""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.bridges import BRIDGES
from attention_jax.layers.decoder import Decoded, DecoderSizes, Told, counted
from attention_jax.layers.mechanism import described
from attention_jax.layers.stacked_decoder import StackedConfig, StackedDecoder
from attention_jax.ops.recurrent import Gates
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = "Graves (2012), Sequence transduction; Wu, Shapiro and Cotterell (2018)"


@dataclasses.dataclass(frozen=True)
class Config(StackedConfig):
    """The decoder that reads the target alone, for the readout `marginal`.

    Further fields are those of `layers.stacked_decoder.StackedConfig`.

    Attributes:
      name: The decoder.
      bridge: What the state starts from; zeros in the papers.
    """

    name: str = setting("transducer")
    bridge: str = setting("zero", choices=BRIDGES)


def build(config: Config, sizes: DecoderSizes, attention: Any) -> "TransducerDecoder":
    """Builds the decoder around the mechanism that `attention` configures.

    Raises:
      ValueError: If the mechanism carries something, which would be of one alignment.
    """
    mechanism = sizes.mechanism(attention, config.hidden_dim, config.alignment_head)
    if not mechanism.is_parallel:
        raise ValueError(
            "attention.name: expected a mechanism that carries nothing from token to token beside "
            f"the decoder 'transducer', found {described(attention)}"
        )
    return TransducerDecoder(config, sizes, mechanism)


@dataclasses.dataclass(frozen=True)
class TransducerDecoder(StackedDecoder):
    """Prediction network as pure functions: a stack of cells, asked about but never told."""

    config: Config
    reads_contexts = False

    @property
    def feature_dim(self) -> int:
        """Depth of the features."""
        return self.config.hidden_dim

    def advance(
        self,
        params: Params,
        memory: Memory,
        dropout: Any,
        state: State,
        inputs: Gates,
        call: Call = Call(),
    ) -> tuple[State, dict[str, Any]]:
        """Updates the layers, then asks."""
        # The query has read the last word; what it finds is carried no further than the readout.
        new, hidden = self._update(params, dropout, state, inputs)
        attention, new["attention"] = self.attend(params, hidden, memory, state, call)
        return new, {"attention": attention, "hidden": hidden}

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
        """Decodes known targets: the recurrence first, then all queries at once."""
        hidden, attention, state = self.ask_afterwards(
            self._update, params, memory, state, embedded, call
        )
        return Decoded(hidden, attention, state)

    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Returns the state of the top layer."""
        return outputs["hidden"]

    def _update(
        self, params: Params, dropout: Any, state: State, gates: Gates
    ) -> tuple[State, Array]:
        carries, hidden = self.stack.step(params, dropout, state, gates)
        return {"position": counted(state), **carries}, hidden
