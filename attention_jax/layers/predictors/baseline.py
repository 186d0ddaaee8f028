"""Learnt baseline of REINFORCE: the log-likelihood of a target token that a source leads to expect.

  b = tanh(mean annotation W + c) w + d
"""

import dataclasses
from collections.abc import Mapping

import jax
from jaxtyping import Float

from attention_jax.configuration import setting
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.perceptron import perceptron, perceptron_parameters
from attention_jax.layers.predictor import Predictor
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


@dataclasses.dataclass(frozen=True)
class BaselinePredictor(Predictor):
    """Learnt baseline as pure functions.

    Attributes:
      annotation_dim: Depth of an annotation.
      hidden_dim: Depth of the hidden layer.
    """

    annotation_dim: int
    hidden_dim: int

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters of both layers."""
        return perceptron_parameters(self.annotation_dim, self.hidden_dim, 1)

    def predict(self, params: Params, encoded: Encoded) -> Float[Array, "B"]:
        """Predicts one number a source, of annotations that do not learn from it."""
        mean = jax.lax.stop_gradient(masked_mean(encoded.annotations, encoded.mask))
        return perceptron(params, mean)[..., 0]  # B 1 -> B
