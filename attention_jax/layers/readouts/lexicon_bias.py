"""Lexicon bias: the logits of what attended source tokens may be translated by are raised.

  p = softmax(W s + b + log(p_lex + eps)),    p_lex(v) = sum_s a_s p(v | x_s)

Whatever no attended token may be translated by loses log eps against what one surely is.

Deviations: what the rows of a lexicon leave over is nobody's, and a source word that it does not
know biases nothing; in the paper both are UNK's.
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.lexicon import LexiconReadout, checked_sizes
from attention_jax.layers.readout import ReadoutSizes, Step
from attention_jax.ops.mixtures import scattered
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.types import Params

PAPER = "Arthur, Neubig and Nakamura (2016), section 3.2, eq. 12"


@dataclasses.dataclass(frozen=True)
class Config:
    """A softmax whose logits a lexicon biases.

    Attributes:
      name: The readout.
      epsilon: eps, which bounds how much the lexicon can take away. The gradient that attention
        gets by it is up to 1 / eps.
    """

    name: str = setting("lexicon_bias")
    epsilon: float = setting(1e-3, above=0.0)
    reads_lexicon: ClassVar[bool] = True


def build(config: Config, sizes: ReadoutSizes) -> "LexiconBias":
    """Builds the readout.

    Raises:
      ValueError: If the decoder does not say which source tokens it attends to.
    """
    return LexiconBias(checked_sizes(config.name, sizes), config.epsilon)


@dataclasses.dataclass(frozen=True)
class LexiconBias(LexiconReadout):
    """Lexicon bias as pure functions.

    Attributes:
      epsilon: Added to the lexicon's probabilities.
    """

    epsilon: float

    def predict(self, params: Params, step: Step) -> SoftmaxPredictions:
        """Returns the softmax of the biased logits."""
        logits = self.softmax.predict(params, step).logits
        lexical = scattered(*self.translations(step), self.sizes.vocabulary_size)  # *B V
        return SoftmaxPredictions(logits + jnp.log(lexical + self.epsilon))
