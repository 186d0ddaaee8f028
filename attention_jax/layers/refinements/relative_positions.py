"""Relative positions: learned vectors for each distance, added to keys and to values.

  scores[t, s] = scale query[t] . (keys[s] + k_clip(s - t))
  context[t] = sum_s weights[t, s] (values[s] + v_clip(s - t))

Distances are clipped to +- max_distance. The scale is the score's: 1 / sqrt(depth) for
`scaled_dot` as in the paper, 1 for `luong_dot`.
"""

import dataclasses
import functools
from typing import ClassVar

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.refinement import Head, RefinementConfig, change_score, scale_of_products
from attention_jax.ops.positions import slot_offsets
from attention_jax.ops.summation import accumulation_dtype
from attention_jax.types import Array, Memory, Params

PAPER = "Shaw, Uszkoreit and Vaswani (2018), section 3.2, eq. 3 and 4; each head has its own tables"


@dataclasses.dataclass(frozen=True)
class Config(RefinementConfig):
    """Relative positions.

    Attributes:
      max_distance: Distances beyond it count as it (k in the paper, there 16).
      adds_values: Whether values get a vector for their distance, too.
    """

    max_distance: int = setting(16, at_least=1)
    adds_values: bool = setting(True)
    order: ClassVar[int] = 30
    is_positional: ClassVar[bool] = True
    # Whose queries are rotated by their positions, which is no distance.
    excludes: ClassVar[tuple[str, ...]] = ("rope",)


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Adds the terms that depend on distances; raises `ValueError` without dot products."""
    reach, factor = config.max_distance, scale_of_products(head, "'relative_positions'")
    size = 2 * reach + 1
    table = functools.partial(Parameter.of, "embedding", positions=size)
    tables = {"distance_keys": table(head_dim=head.key_dim)}
    if config.adds_values:
        tables["distance_values"] = table(head_dim=head.value_dim)

    def bins(memory: Memory, positions: Array) -> Array:
        return jnp.clip(slot_offsets(memory, positions), -reach, reach) + reach

    def score(
        params: Params, scores: Array, query: Array, memory: Memory, positions: Array
    ) -> Array:
        # A gradient sums over all slots of a distance, in bfloat16 to 256 times one of them only.
        of_distance = factor * jnp.matmul(
            query, params["distance_keys"].T, preferred_element_type=accumulation_dtype(query)
        )
        # A query meets each distance once, *B T 2R+1, and each slot then takes its own: *B T S.
        index = jnp.broadcast_to(bins(memory, positions), scores.shape)
        return scores + jnp.take_along_axis(of_distance, index, axis=-1)

    parts = change_score(parts, score, **tables)
    if not config.adds_values:
        return parts
    average_values = parts.spec.average

    def average(params: Params, weights: Array, memory: Memory, positions: Array) -> Array:
        context = average_values(params, weights, memory, positions)
        places = jax.nn.one_hot(bins(memory, positions), size, dtype=weights.dtype)
        of_distance = jnp.einsum("...ts,...tsd->...td", weights, places)  # d: 2 reach + 1 distances
        return context + of_distance.astype(context.dtype) @ params["distance_values"]

    return parts._replace(spec=dataclasses.replace(parts.spec, average=average))
