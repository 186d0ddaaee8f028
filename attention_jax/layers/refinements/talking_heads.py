"""Talking heads: scores, and weights, are mixed over the heads by learned matrices.

  scores[h] = sum_g P[g, h] scores[g],   context[h] = sum_g Q[g, h] normalizer(scores[g]) values[h]

Mixed weights may be negative and have any sum, so that they say no longer where a head looks: the
weights that are reported, such as to objectives and pictures, are those of the normalizer.
"""

import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.refinement import Head, RefinementConfig, change_score
from attention_jax.types import Array, Call, Params

PAPER = "Shazeer et al. (2020), Talking-heads attention, section 4"


@dataclasses.dataclass(frozen=True)
class Config(RefinementConfig):
    """Talking heads; the matrices start near the identity.

    Attributes:
      mixes_scores: Whether heads talk before the normalizer.
      mixes_weights: Whether they talk after it, on the way to the average of the values.
    """

    mixes_scores: bool = setting(True)
    mixes_weights: bool = setting(True)
    order: ClassVar[int] = 70

    def __post_init__(self) -> None:
        """Rejects heads that never talk."""
        if not (self.mixes_scores or self.mixes_weights):
            raise ValueError("mixes_scores: expected True here or in mixes_weights, found neither")


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Mixes before and after the normalizer.

    Raises:
      ValueError: For a single head, or if a slot of one head is not the same slot in another.
    """
    if head.num_heads == 1:
        raise ValueError("attention.num_heads: expected more than one for 'talking_heads', found 1")
    if getattr(parts.spec.pattern, "is_own", False):
        raise ValueError(
            "attention.score.name: expected scores of the same slots in all heads for "
            f"'talking_heads', found {head.score}, which places a window in each"
        )

    def mix(array: Array, column: Array) -> Array:
        # H times H *B T S: this head's share of every head, its own among them.
        others = jnp.tensordot(column.astype(array.dtype), head.gather(array), 1)
        # The identity is not learned: small matrices start near it.
        return array + others

    # Each head has one column of P, or Q: parameters are a head's own.
    vector = Parameter.of("mixing", mixed_heads=head.num_heads)
    if config.mixes_scores:
        parts = change_score(
            parts,
            lambda params, scores, *unused: mix(scores, params["mixed_scores"]),
            mixed_scores=vector,
        )
    if not config.mixes_weights:
        return parts

    def reweight(params: Params, weights: Array, call: Call) -> Array:
        return mix(weights, params["mixed_weights"])

    return parts._replace(
        spec=dataclasses.replace(parts.spec, reweight=reweight),
        parameters={**parts.parameters, "mixed_weights": vector},
    )
