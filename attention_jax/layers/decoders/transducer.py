"""The decoder of neural transducers: it reads the target alone, and asks what it could attend to.

  h_t = stack of cells(h_{t-1}, E y_{t-1});   features = h_t
  scores[t, s] = score(h_t, annotation_s)

Nothing that is attended to comes back: neither states nor features depend on where a token was
written from. That makes sums over alignments exact, which are the readout's to take. In an RNN
transducer this is the prediction network.
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
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.layers.mechanism import Mechanism, described
from attention_jax.layers.recurrent_decoder import ATTENTION_KEY, RecurrentDecoder
from attention_jax.ops.deferred_scan import deferred_scan
from attention_jax.ops.recurrent import CELLS, Gates
from attention_jax.types import Array, Call, Memory, Params, State

PAPER = "Graves (2012), Sequence transduction; Wu, Shapiro and Cotterell (2018)"


@dataclasses.dataclass(frozen=True)
class Config(DecoderConfig):
    """The decoder that reads the target alone, for the readout `marginal`.

    Further fields are those of `layers.decoder.DecoderConfig`.

    Attributes:
      name: The decoder.
      cell: `lstm` in the papers; also `gru` or `gru_reset_before`.
      hidden_dim: Depth of the state.
      num_layers: How many layers are stacked.
      bridge: What the state starts from; zeros in the papers.
      residual: Whether a layer from the second on adds its input to its output.
      dropout: Share of a layer's input that is dropped, from the second layer on, the same at
        all steps.
      recurrent_dropout: Share of the hidden state that is dropped, the same at all steps.
    """

    name: str = setting("transducer")
    cell: str = setting("lstm", choices=CELLS)
    hidden_dim: int = setting(256, at_least=1)
    num_layers: int = setting(1, at_least=1)
    bridge: str = setting("zero", choices=BRIDGES)
    residual: bool = setting(False)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)
    recurrent_dropout: float = setting(0.0, at_least=0.0, below=1.0)

    def __post_init__(self) -> None:
        """Rejects fields that would change nothing."""
        if self.num_layers == 1 and (self.dropout or self.residual):
            field = "dropout" if self.dropout else "residual"
            raise ValueError(f"{field}: expected more than one layer beside it, found one")


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
    stack = CellStack(
        config.cell, sizes.embedding_dim, config.hidden_dim, config.num_layers,
        config.residual, config.dropout, config.recurrent_dropout,
    )  # fmt: skip
    return TransducerDecoder(config, sizes, mechanism, stack)


@dataclasses.dataclass(frozen=True)
class TransducerDecoder(RecurrentDecoder):
    """Pure functions of the decoder."""

    config: Config
    sizes: DecoderSizes
    mechanism: Mechanism
    stack: CellStack
    reads_contexts = False

    @property
    def feature_dim(self) -> int:
        """Depth of the features."""
        return self.config.hidden_dim

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
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
        state = {f"layer_{layer}": carry for layer, carry in enumerate(carries)}
        return {**state, "position": start_position(first_source(sources).mask.shape[0])}

    def dropout(self, call: Call, batch: int, dtype: DTypeLike) -> Any:
        """Draws the factors of each layer's input and hidden state."""
        return self.stack.draw(call, batch, dtype)

    def inputs(self, params: Params, embedded: Array) -> Gates:
        """Projects the previous words for the lowest layer."""
        return self.stack.inputs(params, embedded)

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
        carries, hidden = self.stack.step(params, dropout, state, inputs)
        attention, carried = self.attend(params, hidden, memory, state, call)
        new = {**carries, "position": counted(state), "attention": carried}
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
        dropout = self.dropout(call, embedded.shape[0], embedded.dtype)
        inputs = self.inputs(params, jnp.swapaxes(embedded, 0, 1))  # T B G of each gate

        def step(constants: Any, carries: State, inputs: Gates) -> tuple[State, Array]:
            return self.stack.step(*constants, carries, inputs)

        carries = {name: state[name] for name in self.stack.parameters}
        carries, hidden = deferred_scan(step, (params, dropout), carries, inputs)
        hidden = jnp.swapaxes(hidden, 0, 1)
        attention, after = self.mechanism.attend(
            params["attention"], hidden, memory,
            mask=call.mask_of("attention"), call=call.fold(ATTENTION_KEY),
        )  # fmt: skip
        position = state["position"] + embedded.shape[1]
        return Decoded(hidden, attention, {**carries, "position": position, "attention": after})

    def readout(self, params: Params, outputs: dict[str, Any], embedded: Array) -> Array:
        """Returns the state of the top layer."""
        return outputs["hidden"]
