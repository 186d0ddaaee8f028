"""Learnt baseline of REINFORCE: the log-likelihood of a target token that a source leads to expect.

  b = tanh(mean annotation W + c) w + d
"""

import dataclasses
from collections.abc import Mapping

import jax
import jax.numpy as jnp
from jaxtyping import Float

from attention_jax.configuration import setting
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.predictor import Predictor
from attention_jax.ops.masks import masked_mean
from attention_jax.ops.products import add_bias
from attention_jax.ops.summation import upcast
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
    """Pure functions of the predictor.

    Attributes:
      annotation_dim: Depth of an annotation.
      hidden_dim: Depth of the hidden layer.
    """

    annotation_dim: int
    hidden_dim: int

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters of both layers."""
        return {
            "hidden": Parameter.of(
                "kernel", annotation=self.annotation_dim, hidden=self.hidden_dim
            ),
            "hidden_bias": Parameter.of("bias", hidden=self.hidden_dim),
            "output": Parameter.of("kernel", hidden=self.hidden_dim, prediction=1),
            "output_bias": Parameter.of("bias", prediction=1),
        }

    def predict(self, params: Params, encoded: Encoded) -> Float[Array, "B"]:
        """Predicts one number a source, of annotations that do not learn from it."""
        mean = jax.lax.stop_gradient(masked_mean(encoded.annotations, encoded.mask))
        hidden = jnp.tanh(add_bias(mean @ params["hidden"], params["hidden_bias"]))
        return upcast(add_bias(hidden @ params["output"], params["output_bias"]))[..., 0]
