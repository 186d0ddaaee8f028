"""Alignment module: attention of its own that learns to align, beside a decoder that translates.

  q_t = f_t W_f + e(y_{t-1}) W_e,   k_s = h_s W_k
  alpha[t] = 1/N sum_n softmax_s(q_tn . k_sn / sqrt(d))

in N heads of depth d, of the decoder's features f, of the embedded token that each step has read,
and of the annotations h. Row t knows y_{t-1} and is its alignment, which `supervised_alignment`
teaches with step `reads`. No gradient goes further than to W_f, W_e and W_k: the translator learns
beside the module as without it, but for the clipping of gradients, whose norm is of both.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.aligner import Aligner, AlignerSizes
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import Step
from attention_jax.ops.normalizers import masked_softmax
from attention_jax.types import Array, Params

PAPER = (
    "Chen et al. (2020), Accurate word alignment induction from neural machine translation, "
    "section 3.2, Shift-AET"
)


@dataclasses.dataclass(frozen=True)
class Config:
    """An alignment module.

    Attributes:
      name: The aligner.
      num_heads: N, whose weights are averaged.
      head_dim: d, depth of a head.
    """

    name: str = setting("module")
    num_heads: int = setting(4, at_least=1)
    head_dim: int = setting(64, at_least=1)


def build(config: Config, sizes: AlignerSizes) -> "AlignmentModule":
    """Builds the module for features, embeddings and annotations of the given depths."""
    return AlignmentModule(config, sizes)


@dataclasses.dataclass(frozen=True)
class AlignmentModule(Aligner):
    """Alignment module as pure functions.

    Deviations:
      The paper asks with the states of one layer of a Transformer's decoder, and trains beside a
      finished model; here it asks with the last features of any decoder, which may have forgotten
      what was read, and so with the embedded token, too.
    """

    config: Config
    sizes: AlignerSizes
    is_separate = True

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The matrices of queries and keys."""
        heads = {"heads": self.config.num_heads, "head_dim": self.config.head_dim}
        return {
            "feature_kernel": Parameter.of("kernel", features=self.sizes.feature_dim, **heads),
            "word_kernel": Parameter.of("kernel", embed=self.sizes.embedding_dim, **heads),
            "key_kernel": Parameter.of("kernel", annotation=self.sizes.memory_dim, **heads),
        }

    def prepare(self, params: Params, encoded: Encoded) -> Any:
        """Returns the keys, `B S N d`, and which slots there are."""
        return _heads(encoded.annotations, params["key_kernel"]), encoded.mask

    def align(self, params: Params, step: Step, prepared: Any) -> Array:
        """Returns the mean of the heads' weights."""
        keys, mask = prepared
        queries = _heads(step.features, params["feature_kernel"])
        queries = queries + _heads(step.word, params["word_kernel"])
        scores = jnp.einsum("...nd,...snd->...ns", queries, keys) / math.sqrt(keys.shape[-1])
        return masked_softmax(scores, mask[..., None, :]).mean(axis=-2)  # *B N S -> *B S


def _heads(vectors: Array, kernel: Array) -> Array:
    return jnp.einsum("...e,end->...nd", jax.lax.stop_gradient(vectors), kernel)
