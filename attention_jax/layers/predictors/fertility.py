"""Fertility: how much attention each source token is expected to get in all, a normal distribution.

  hidden = tanh(annotation W + b);   mean, log_variance = hidden W_o + b_o
"""

import dataclasses

from jaxtyping import Float

from attention_jax.configuration import setting
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.perceptron import perceptron
from attention_jax.layers.predictor import PerceptronPredictor
from attention_jax.types import Array, Fertility, Params

PAPER = "Cohn et al. (2016), section 3.3, global fertility"


@dataclasses.dataclass(frozen=True)
class Config:
    """Fertility prediction, which the objective `global_fertility` teaches.

    Attributes:
      hidden_dim: Depth of the hidden layer.
    """

    hidden_dim: int = setting(128, at_least=1)


def build(config: Config, annotation_dim: int) -> "FertilityPredictor":
    """Builds the predictor for annotations of the given depth."""
    return FertilityPredictor(annotation_dim, config.hidden_dim)


class FertilityPredictor(PerceptronPredictor):
    """Fertility predictor as pure functions."""

    outputs = 2  # mean and logarithm of the variance

    def predict(self, params: Params, encoded: Encoded) -> Fertility:
        """Predicts each source token's fertility."""
        return predict_fertility(params, encoded.annotations)


def predict_fertility(params: Params, annotations: Float[Array, "B S D"]) -> Fertility:
    """Fertility: predicts a normal distribution N(mu(e_i), sigma^2(e_i)) for each source token.

    Returned are the mean and the logarithm of the variance, `B S` each, so that the variance is the
    exponential of a linear layer. Unlike in the paper, both share the hidden layer.
    """
    predicted = perceptron(params, annotations)
    return Fertility(predicted[..., 0], predicted[..., 1])
