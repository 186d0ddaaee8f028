"""Additive attention: a hidden layer scores each query against each key.

  scores[t, s] = vector . tanh(query[t] W_q + keys[s] W_k)

The keys are projected once for a source, not once for a query.
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.additive import AdditiveConfig, additive_parts
from attention_jax.layers.mechanism import MechanismParts

PAPER = "Bahdanau, Cho and Bengio (2015), section 3.1 and appendix A.1.2"


@dataclasses.dataclass(frozen=True)
class Config(AdditiveConfig):
    """Additive attention; `attention_dim` is n' in the paper (there 1000).

    Further fields are those of `layers.additive.AdditiveConfig`.
    """

    name: str = setting("bahdanau")


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds additive attention for queries and keys of the given depths."""
    return additive_parts(config, query_dim, key_dim, of_memory=("key_kernel",))
