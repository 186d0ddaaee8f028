"""Attention sink: a slot without a value takes what no other slot should get.

  weights[t, s] = exp(scores[t, s]) / (exp(sink) + sum_r exp(scores[t, r]))

With a fixed sink of zero this is the softmax with one more in its denominator, Xiao et al.'s zero
sink. A sink that each head learns is that of later models, such as gpt-oss.

Deviations: Xiao et al.'s learnable sink is something else and not here: a token before the text,
with a key that queries are compared with and a value that is read. Their streaming, where the
first positions stay readable, is `num_first` of the refinement `sliding_window`.
"""

import dataclasses
from typing import Any, ClassVar

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.refinement import Head, RefinementConfig
from attention_jax.types import Array, Params

PAPER = (
    "Xiao et al. (2024), Efficient streaming language models, section 3.3, for the zero sink; "
    "OpenAI (2025), gpt-oss model card, for a learned one"
)


@dataclasses.dataclass(frozen=True)
class Config(RefinementConfig):
    """A sink.

    Attributes:
      is_learned: Whether each head learns the sink's score, which starts at zero, unless
        `initialization` is `uniform`.
    """

    is_learned: bool = setting(True)
    order: ClassVar[int] = 60
    adds_slot: ClassVar[bool] = True
    tells_key_bias: ClassVar[bool] = True


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Gives the normalizer a further slot, and forgets it afterwards."""
    normalize = parts.spec.normalizer

    def normalizer(params: Params, scores: Array, mask: Array, *rest: Any, **call: Any):
        sink = params["sink"].astype(scores.dtype) if config.is_learned else 0.0
        column = jnp.full((*scores.shape[:-1], 1), sink, scores.dtype)
        scores = jnp.concatenate([scores, column], axis=-1)
        # The sink is open where any slot is: a fully masked row has to give zeros.
        mask = jnp.concatenate([mask, mask.any(-1, keepdims=True)], axis=-1)
        weights, aux = normalize(params, scores, mask, *rest, **call)
        # Without the sink, whose value is zero, weights sum to less than one.
        return weights[..., :-1], aux

    parameters = {"sink": Parameter.of("bias")} if config.is_learned else {}
    return parts._replace(
        spec=dataclasses.replace(parts.spec, normalizer=normalizer),
        parameters={**parts.parameters, **parameters},
    )
