"""Rotary positions: queries and keys are rotated by angles that grow with their positions.

  scores[t, s] = score(R_t query[t], R_s keys[s]), which depends on t and s by their distance only
"""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.refinement import Head, RefinementConfig, scale_of_products
from attention_jax.ops.positions import rotate
from attention_jax.types import Array, Memory, Params

PAPER = "Su et al. (2021), RoFormer, section 3.2"


@dataclasses.dataclass(frozen=True)
class Config(RefinementConfig):
    """Rotary positions.

    Attributes:
      base: Of the geometric series of angles (10,000 in the paper).
      layout: Which channels form a pair: `interleaved` as in the paper, or `halves`.
    """

    base: float = setting(10000.0, above=1.0)
    layout: str = setting("interleaved", choices=("interleaved", "halves"))
    order: ClassVar[int] = 20
    is_positional: ClassVar[bool] = True
    tells_key_bias: ClassVar[bool] = True


def refine(config: Config, parts: MechanismParts, head: Head) -> MechanismParts:
    """Rotates queries and keys.

    Raises:
      ValueError: If their depth is odd, or scores are not dot products: of rotated vectors those
        alone depend on distances only.
    """
    scale_of_products(head, "'rope'")  # called for what it refuses
    if head.key_dim % 2:
        raise ValueError(
            f"attention.head_dim: expected an even depth for 'rope', found {head.key_dim}"
        )
    spec = parts.spec

    def prepare(params: Params, memory: Memory, positions: Array) -> Memory:
        memory = spec.prepare(params, memory, positions)
        # Once for a source: in a search, the cache holds keys that are rotated already.
        keys = rotate(memory.keys, positions, config.base, config.layout)
        return dataclasses.replace(memory, keys=keys)

    def prepare_query(params: Params, query: Array, positions: Array) -> Array:
        query = spec.prepare_query(params, query, positions)
        return rotate(query, positions, config.base, config.layout)

    return parts._replace(
        spec=dataclasses.replace(spec, prepare=prepare, prepare_query=prepare_query)
    )
