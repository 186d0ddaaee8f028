"""Linear interpolation with a lexicon: a learnt gate mixes its probabilities with the softmax.

  p = lambda p_lex + (1 - lambda m) softmax(W s + b),    m = sum_v p_lex(v),  lambda = sigmoid(g)

In the paper m is always one, for what the lexicon leaves over is UNK's; here it is the softmax's.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.lexicon import LexiconReadout, checked_sizes
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import ReadoutSizes, Step
from attention_jax.ops.mixtures import MixturePredictions
from attention_jax.ops.summation import upcast
from attention_jax.types import Params

PAPER = "Arthur, Neubig and Nakamura (2016), section 3.2, eq. 13"


@dataclasses.dataclass(frozen=True)
class Config:
    """A mixture of the softmax and a lexicon.

    Attributes:
      name: The readout.
    """

    name: str = setting("lexicon_linear")
    reads_lexicon: ClassVar[bool] = True


def build(config: Config, sizes: ReadoutSizes) -> "LexiconLinear":
    """Builds the readout.

    Raises:
      ValueError: If the decoder does not say which source tokens it attends to.
    """
    return LexiconLinear(checked_sizes(config.name, sizes))


@dataclasses.dataclass(frozen=True)
class LexiconLinear(LexiconReadout):
    """Linear interpolation with a lexicon as pure functions."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Those of the softmax, and the gate, a single number that starts at zero."""
        return {**self.softmax.parameters, "output_gate": Parameter.of("bias").starting_at(0.0)}

    def predict(self, params: Params, step: Step) -> MixturePredictions:
        """Returns the mixture."""
        entries, ids = self.translations(step)
        # One gate for all words and sentences, as in the paper.
        weights = jax.nn.sigmoid(upcast(params["output_gate"])) * entries
        kept = jnp.maximum(1 - weights.sum(axis=-1), 0.0)  # against rounding, where all is added
        logits = self.softmax.predict(params, step).logits
        return MixturePredictions(logits, kept, weights, ids)
