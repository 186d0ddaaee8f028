"""Fertility: how much attention each source token is expected to get in all, a normal distribution.

  hidden = tanh(annotation W + b);   mean, log_variance = hidden W_o + b_o
"""

import dataclasses
from collections.abc import Mapping

import jax.numpy as jnp
from jaxtyping import Float

from attention_jax.configuration import setting
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.predictor import Predictor
from attention_jax.ops.products import add_bias
from attention_jax.ops.summation import upcast
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


@dataclasses.dataclass(frozen=True)
class FertilityPredictor(Predictor):
    """Fertility predictor as pure functions.

    Attributes:
      annotation_dim: Depth of an annotation.
      hidden_dim: Depth of the hidden layer.
    """

    annotation_dim: int
    hidden_dim: int

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters of both layers."""
        depth, hidden_dim = self.annotation_dim, self.hidden_dim
        return {
            "hidden": Parameter.of("kernel", annotation=depth, hidden=hidden_dim),
            "hidden_bias": Parameter.of("bias", hidden=hidden_dim),
            "output": Parameter.of("kernel", hidden=hidden_dim, prediction=2),
            "output_bias": Parameter.of("bias", prediction=2),
        }

    def predict(self, params: Params, encoded: Encoded) -> Fertility:
        """Predicts each source token's fertility."""
        return predict_fertility(params, encoded.annotations)


def predict_fertility(params: Params, annotations: Float[Array, "B S D"]) -> Fertility:
    """Fertility: predicts a normal distribution N(mu(e_i), sigma^2(e_i)) for each source token.

    Returned are the mean and the logarithm of the variance, `B S` each, so that the variance is the
    exponential of a linear layer. Unlike in the paper, both share the hidden layer.
    """
    hidden = jnp.tanh(add_bias(annotations @ params["hidden"], params["hidden_bias"]))
    predicted = upcast(add_bias(hidden @ params["output"], params["output_bias"]))
    return Fertility(predicted[..., 0], predicted[..., 1])
