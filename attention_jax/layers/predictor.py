"""Auxiliary predictors: the interface that they share, how they are built, and their lookup.

A predictor reads the encoded source and predicts something that an objective teaches, and that is
among the model's outputs under the predictor's name. A predictor file in `layers/predictors` holds
`PAPER`, a frozen dataclass `Config` and `build(config, annotation_dim) -> Predictor`.
"""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from attention_jax.configuration import NamedConfigs
from attention_jax.discovery import Parts, build_part
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.perceptron import perceptron_parameters
from attention_jax.types import Params

PREDICTORS = Parts("attention_jax.layers.predictors")


class Predictor(abc.ABC):
    """Auxiliary predictor: pure functions from the encoded source to a prediction."""

    @property
    @abc.abstractmethod
    def parameters(self) -> Mapping[str, Parameter]:
        """The tree of its parameters."""

    @abc.abstractmethod
    def predict(self, params: Params, encoded: Encoded) -> Any:
        """Returns the prediction for each source, a pytree with leading axis `B`."""


@dataclasses.dataclass(frozen=True)
class PerceptronPredictor(Predictor):
    """Predictor with one hidden layer, the perceptron of `layers.perceptron`.

    Attributes:
      annotation_dim: Depth of an annotation.
      hidden_dim: Depth of the hidden layer.
      outputs: How many numbers it predicts.
    """

    annotation_dim: int
    hidden_dim: int
    outputs: ClassVar[int] = 1

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The parameters of both layers."""
        return perceptron_parameters(self.annotation_dim, self.hidden_dim, self.outputs)


def build_predictors(configs: NamedConfigs, annotation_dim: int) -> dict[str, Predictor]:
    """Builds the auxiliary predictors of a model, by name."""
    return {
        name: build_part(config, Predictor, annotation_dim)
        for name, config in configs.items()
    }
