"""Convolutional copy attention: copies by an attention of its own over convolved features.

  kappa = softmax(conv(F[t]));   lambda = sigmoid(max_s conv(F[t])_s + b)
  p(w) = lambda sum_{s: word of s is w} kappa_s + (1 - lambda) softmax(logits)[w]

F are the features of the mechanism `convolutional`, which attends by a third kernel over the same:
what is to be copied need not be what is to be read.

Deviations: UNK is no target where the word can be copied (see `data/text/extended_vocabulary.py`),
so that the paper's penalty of UNK has nothing to do; punctuation may be copied, too. Both kappa and
the largest gate are of the slots that may be copied; the paper's are of all.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.copying import WORDS, CopyingReadout, check_copying
from attention_jax.layers.mechanism import described
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import ReadoutSizes, Step
from attention_jax.ops.convolved_features import filter_features
from attention_jax.ops.copying import gated_copying
from attention_jax.types import Array, Params

PAPER = "Allamanis, Peng and Sutton (2016), A convolutional attention network, section 3.2"


@dataclasses.dataclass(frozen=True)
class Config:
    """Copying by convolved features.

    Attributes:
      name: The readout.
      width: w3, how many features make a score of copying.
    """

    name: str = setting("convolutional_copy")
    width: int = setting(2, at_least=1)


def build(config: Config, sizes: ReadoutSizes) -> "ConvolutionalCopy":
    """Builds the readout.

    Raises:
      ValueError: If there is nothing that it could copy, or attention convolves no features.
    """
    check_copying(config.name, sizes)
    channels = getattr(sizes.attention, "channels", None)
    if channels is None:
        raise ValueError(
            f"attention.name: expected 'convolutional' beside the readout {config.name!r}, which "
            f"reads its features, found {described(sizes.attention)}"
        )
    return ConvolutionalCopy(sizes, config.width, channels)


@dataclasses.dataclass(frozen=True)
class ConvolutionalCopy(CopyingReadout):
    """Convolutional copy attention as pure functions.

    Attributes:
      width: Of the kernels.
      channels: How many channels the features have.
    """

    width: int
    channels: int

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The softmax's, and the kernels of copy attention and of the gate."""
        kernel = Parameter.of("kernel", kernel=self.width, channels=self.channels)
        copying = {"score": kernel, "gate": kernel, "gate_bias": Parameter.of("bias")}
        return {**self.generating.parameters, "copying": copying}

    def divide(self, params: Params, step: Step, logits: Array) -> tuple[Array, Array]:
        """Divides by the gate, which is as high as the features of any place make it."""
        features, copying = step.attention.aux["features"], params["copying"]
        scores = filter_features(features, copying["score"])  # *B S
        gates = filter_features(features, copying["gate"]) + copying["gate_bias"]
        words = jnp.broadcast_to(step.source[WORDS], scores.shape)
        return gated_copying(scores, gates, words)
