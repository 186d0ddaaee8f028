"""Long short-term memory-networks: LSTMs that attend to the tape of their earlier states.

  a_t = softmax over i < t of v . tanh(W_h h_i + W_x x_t + W_s s_{t-1})
  s_t, r_t = sum_i a_t(i) h_i, sum_i a_t(i) c_i
  h_t, c_t = LSTM step from (s_t, r_t) with x_t

The score is additive attention (`ops/scores.py`) whose query is the token and the last summary.
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.cells import cell_parameters
from attention_jax.layers.encoder import READINGS, Encoded, FinalCarry, SequenceEncoder
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.lstmn import run_lstmn
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.products import add_bias
from attention_jax.types import Array, Call, Params

PAPER = "Cheng, Dong and Lapata (2016), section 3.1, eq. 5-10"


@dataclasses.dataclass(frozen=True)
class Config:
    """LSTMN encoder.

    Attributes:
      name: The encoder.
      hidden_dim: Depth of the hidden state of each direction.
      attention_dim: Depth of the hidden layer of the intra-attention.
      num_layers: How many layers are stacked; each reads the one below.
      direction: `forward` as in the paper, `backward` (the reversed source) or `bidirectional`.
      dropout: Share of a layer's input that is dropped, from the second layer on.
      recurrent_dropout: Share of the summary that is dropped, the same at all steps.
    """

    name: str = setting("lstmn")
    hidden_dim: int = setting(256, at_least=1)
    attention_dim: int = setting(256, at_least=1)
    num_layers: int = setting(1, at_least=1)
    direction: str = setting("forward", choices=READINGS)
    dropout: float = setting(0.0, at_least=0.0, below=1.0)
    recurrent_dropout: float = setting(0.0, at_least=0.0, below=1.0)

    def __post_init__(self) -> None:
        """Rejects fields that would change nothing."""
        if self.num_layers == 1 and self.dropout:
            raise ValueError("dropout: expected more than one layer beside it, found one")


def build(config: Config, input_dim: int, attention: Any = None) -> "LstmnEncoder":
    """Builds the encoder for embedded tokens of the given depth."""
    return LstmnEncoder(config, input_dim)


@dataclasses.dataclass(frozen=True)
class LstmnEncoder(SequenceEncoder):
    """LSTMN encoder as pure functions."""

    config: Config
    input_dim: int

    @property
    def output_dim(self) -> int:
        """Depth of an annotation."""
        return self.finals[-1].width

    @property
    def finals(self) -> tuple[FinalCarry, ...]:
        """What each layer ends with: its last states, not their summaries."""
        final = FinalCarry(READINGS[self.config.direction], self.config.hidden_dim, "lstm")
        return (final,) * self.config.num_layers

    @property
    def is_causal(self) -> bool:  # type: ignore[override]
        """Whether an annotation depends on what comes before it alone."""
        return self.config.direction == "forward"

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        config, input_dim, tree = self.config, self.input_dim, {}
        hidden, attention = config.hidden_dim, config.attention_dim
        of_state = Parameter.of("attention_kernel", hidden=hidden, attention=attention)
        for layer, final in enumerate(self.finals):
            for reading in final.readings:
                tree[f"layer_{layer}_{reading}"] = {
                    **cell_parameters("lstm", input_dim, hidden),
                    "query_kernel": Parameter.of(
                        "attention_kernel", input=input_dim, attention=attention
                    ),
                    "summary_kernel": of_state,
                    "key_kernel": of_state,
                    "vector": Parameter.of("attention_vector", attention=attention),
                }
            input_dim = final.width
        return tree

    def encode(self, params: Params, embedded: Array, mask: Array, call: Call = Call()) -> Encoded:
        """Reads embedded tokens, layer by layer."""
        config, finals = self.config, []
        # NaN at padding would come back through the gradients of the products.
        layer_input = zero_padding(embedded, mask)
        dtype, shape = embedded.dtype, (embedded.shape[0], config.hidden_dim)
        for layer, final in enumerate(self.finals):
            if layer:
                factors = dropout_factors(
                    call.fold(3 * layer), config.dropout, layer_input.shape, dtype
                )
                layer_input = scale(layer_input, factors)
            outputs, carries = [], {}
            # Three keys a layer: one for its input's dropout, and one for each direction.
            for side, reading in enumerate(final.readings):
                weights = params[f"layer_{layer}_{reading}"]
                keep = dropout_factors(
                    call.fold(3 * layer + 1 + side), config.recurrent_dropout, shape, dtype
                )
                hidden, carries[reading] = run_lstmn(
                    weights,
                    # For all tokens at once: the loop over the tape multiplies summaries only.
                    add_bias(layer_input @ weights["input"], weights["bias"]),
                    layer_input @ weights["query_kernel"],
                    mask,
                    reverse=reading == "backward",
                    keep=keep,
                )
                outputs.append(hidden)
            # The directions side by side: B S D each -> B S 2D.
            layer_input = jnp.concatenate(outputs, axis=-1)
            finals.append(carries)
        return Encoded(layer_input, mask, tuple(finals))
