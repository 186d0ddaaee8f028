"""Learnt baseline of REINFORCE: the log-likelihood of a target token that a source leads to expect.

  b = tanh(mean annotation W + c) w + d
"""

import dataclasses

import jax
from jaxtyping import Float

from attention_jax.configuration import setting
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.perceptron import perceptron
from attention_jax.layers.predictor import PerceptronPredictor
from attention_jax.ops.masks import masked_mean
from attention_jax.types import Array, Params

PAPER = "Mnih and Gregor (2014), Neural variational inference, on input-dependent baselines"


@dataclasses.dataclass(frozen=True)
class Config:
    """The prediction of log-likelihoods, which the objective `reinforce` reads and teaches.

    Attributes:
      hidden_dim: Depth of the hidden layer.
    """

    hidden_dim: int = setting(64, at_least=1)


def build(config: Config, annotation_dim: int) -> "BaselinePredictor":
    """Builds the predictor for annotations of the given depth."""
    return BaselinePredictor(annotation_dim, config.hidden_dim)


class BaselinePredictor(PerceptronPredictor):
    """Learnt baseline as pure functions."""

    def predict(self, params: Params, encoded: Encoded) -> Float[Array, "B"]:
        """Predicts one number a source, of annotations that do not learn from it."""
        mean = jax.lax.stop_gradient(masked_mean(encoded.annotations, encoded.mask))
        return perceptron(params, mean)[..., 0]  # B 1 -> B
