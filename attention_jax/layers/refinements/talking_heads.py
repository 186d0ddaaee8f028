"""Talking heads: scores, and weights, are mixed over the heads by learned matrices.

scores[h] = sum_g P[g, h] scores[g],   weights[h] = sum_g Q[g, h] normalizer(scores)[g]
"""

import dataclasses
from typing import Any

import jax.numpy as jnp

from attention_jax.layers.attention import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.refinement import Head, change_score
from attention_jax.types import Array, Params

PAPER = "Shazeer et al. (2020), Talking-heads attention, section 4"
ORDER = 70


@dataclasses.dataclass(frozen=True)
class Config:
    """Talking heads; both matrices start near the identity."""


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Mixes before and after the normalizer; raises `ValueError` for a single head."""
    if head.num_heads == 1:
        raise ValueError("attention.num_heads: expected more than one for 'talking_heads', found 1")

    def mix(array: Array, column: Array) -> Array:
        others = jnp.tensordot(column.astype(array.dtype), head.gather(array), 1)
        return array + others

    parts = change_score(
        parts,
        lambda params, scores, *unused: mix(scores, params["mixed_scores"]),
        mixed_scores=Parameter((head.num_heads,), "mixing"),
        mixed_weights=Parameter((head.num_heads,), "mixing"),
    )
    normalize = parts.spec.normalizer

    def normalizer(params: Params, scores: Array, mask: Array, *rest: Any, **call: Any):
        weights, aux = normalize(params, scores, mask, *rest, **call)
        return mix(weights, params["mixed_weights"]), aux

    return parts._replace(spec=dataclasses.replace(parts.spec, normalizer=normalizer))
