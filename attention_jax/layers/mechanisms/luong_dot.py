"""Luong's dot score: the query itself is compared with each key.

  scores[t, s] = query[t] . keys[s]

It has no parameters; queries and keys must have the same depth.
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismConfig, MechanismParts, check_one_depth
from attention_jax.layers.normalizer import NORMALIZERS
from attention_jax.ops.attend import AttentionSpec
from attention_jax.ops.scores import score_dot

PAPER = "Luong, Pham and Manning (2015), section 3.1, below eq. 7 (dot)"


@dataclasses.dataclass(frozen=True)
class Config(MechanismConfig):
    """Dot-product attention.

    Attributes:
      name: The mechanism.
      num_heads: How many heads attend side by side.
      normalizer: From scores to weights.
    """

    name: str = setting("luong_dot")
    num_heads: int = setting(1, at_least=1)
    normalizer: str = setting("softmax", choices=NORMALIZERS)


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds the mechanism; raises `ValueError` if queries and keys differ in depth."""
    check_one_depth(config, query_dim, key_dim)
    return MechanismParts(AttentionSpec(score_dot, NORMALIZERS[config.normalizer]), {})
