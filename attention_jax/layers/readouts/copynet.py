"""CopyNet: one softmax over the vocabulary and the positions of the source.

  generate: psi_g(v) = logits[v];   copy: psi_c(s) = tanh(h_s W_c) . f_t
  p(w) = (exp psi_g(w) + sum_{s: word of s is w} exp psi_c(s)) / Z

with Z the sum of all of these. The two are not normalised apart: each word that becomes more likely
to be copied makes every word less likely to be generated.

Beside the last word a recurrent decoder also reads the slots that this was copied from, the
selective read of `layers/selective_read.py`; the scores psi_c are then the decoder's to compute.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.copying import WORDS, CopyingReadout, check_copying
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import ReadoutSizes, Step
from attention_jax.layers.selective_read import SCORES
from attention_jax.ops.copying import joint_softmax
from attention_jax.types import Array, Batch, Params

PAPER = "Gu, Lu, Li and Li (2016), Incorporating copying mechanism, section 3.2, eq. 4 to 8"


@dataclasses.dataclass(frozen=True)
class Config:
    """Generating and copying under one softmax.

    Attributes:
      name: The readout.
      selective_read: Whether the decoder reads, beside the last word, where it was copied from; of
        recurrent decoders only.
    """

    name: str = setting("copynet")
    selective_read: bool = setting(True)


def build(config: Config, sizes: ReadoutSizes) -> "CopyNet":
    """Builds the readout; raises `ValueError` where there is nothing that it could copy."""
    check_copying(config.name, sizes)
    return CopyNet(sizes, config.selective_read)


@dataclasses.dataclass(frozen=True)
class CopyNet(CopyingReadout):
    """Pure functions of the readout.

    Attributes:
      selective_read: Whether the decoder has the scores of copying.

    Deviations:
      Both scores are of the decoder's features f_t where the paper has its state; the
      vocabulary's have a bias.
    """

    selective_read: bool

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The softmax's, and the matrix of the copy scores where the decoder has none."""
        sizes = self.sizes
        if self.selective_read:
            return self.generating.parameters
        kernel = Parameter.of("kernel", annotation=sizes.memory_dim, features=sizes.feature_dim)
        return {**self.generating.parameters, "copy_kernel": kernel}

    def prepare(self, params: Params, encoded: Encoded, batch: Batch) -> Mapping[str, Any]:
        """Returns the ids of what may be copied, and what features are compared with."""
        prepared = super().prepare(params, encoded, batch)
        if self.selective_read:
            return prepared
        keys = jnp.tanh(encoded.annotations @ params["copy_kernel"])  # B S D -> B S F
        return {**prepared, "keys": keys}

    def divide(self, params: Params, step: Step, logits: Array) -> tuple[Array, Array]:
        """Divides by the softmax over both kinds of scores."""
        if self.selective_read:
            scores = step.attention.aux[SCORES]
        else:  # B T F by B F S; a search has K in place of T
            scores = step.features @ step.source["keys"][:, 0].mT
        return joint_softmax(logits, scores, jnp.broadcast_to(step.source[WORDS], scores.shape))
