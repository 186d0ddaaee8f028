"""Pointer-generator: a learned switch between a softmax over the vocabulary and the attention.

  p_gen = sigmoid(w_c . c_t + w_f . f_t + w_x . x_t + b)
  p(w) = p_gen softmax(logits)[w] + (1 - p_gen) sum_{s: word of s is w} a_ts

with c_t = sum_s a_ts h_s. Attention to what cannot be copied, such as EOS, generates.

Coverage, which keeps the pointer from copying a phrase again, is the mechanism `coverage_vector`
with the objective `coverage_loss`. The schedule of its weight switches the loss on late, as in the
paper; the coverage vector is there from the first step on, which the paper's model gets late, too.
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
from attention_jax.ops.copying import pointer_mixture
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Batch, Params

PAPER = "See, Liu and Manning (2017), Get to the point, section 2.2, eq. 8 and 9"


@dataclasses.dataclass(frozen=True)
class Config:
    """A switch between generating a word and copying what is attended to.

    Attributes:
      name: The readout.
    """

    name: str = setting("pointer_generator")


def build(config: Config, sizes: ReadoutSizes) -> "PointerGenerator":
    """Builds the readout; raises `ValueError` where there is nothing that it could copy."""
    check_copying(config.name, sizes)
    return PointerGenerator(sizes)


@dataclasses.dataclass(frozen=True)
class PointerGenerator(CopyingReadout):
    """Pure functions of the readout.

    Deviations:
      The switch reads the decoder's features f_t where the paper has its state: decoders of any
      order have them, made of the state. The logits are those of the decoder's own features, too.
      It reads the embedded word before where the paper has the decoder's input x_t, in which that
      word and the context before are merged.
    """

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The softmax's, and those of the switch."""
        sizes = self.sizes
        switch = {
            "context": Parameter.of("kernel", annotation=sizes.memory_dim, prediction=1),
            "features": Parameter.of("kernel", features=sizes.feature_dim, prediction=1),
            "word": Parameter.of("kernel", embed=sizes.embedding_dim, prediction=1),
            "bias": Parameter.of("bias", prediction=1),
        }
        return {**self.generating.parameters, "switch": switch}

    def prepare(self, params: Params, encoded: Encoded, batch: Batch) -> Mapping[str, Any]:
        """Returns the ids of what may be copied, and what each slot says to the switch."""
        # w_c . c_t is an average of one number a slot: contexts are not needed for it.
        said = (encoded.annotations @ params["switch"]["context"])[..., 0]  # B S D -> B S
        return {**super().prepare(params, encoded, batch), "said": upcast(said)}

    def divide(self, params: Params, step: Step, logits: Array) -> tuple[Array, Array]:
        """Divides by the switch what attention has found."""
        weights, switch = step.attention.weights, params["switch"]
        logit = (weights * step.source["said"]).sum(-1)
        parts = step.features @ switch["features"] + step.word @ switch["word"]
        logit = logit + upcast(parts)[..., 0] + upcast(switch["bias"])
        words = jnp.broadcast_to(step.source[WORDS], weights.shape)
        return pointer_mixture(logit, weights, words)
