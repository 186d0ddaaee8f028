"""Monotonic attention: a query reads on from where the last one stopped, and stops at one slot.

  energies[t, s] = score(query[t], keys[s]) + r;   p[t, s] = sigmoid(energies[t, s] + noise)
  q[t, s] = (1 - p[t, s-1]) q[t, s-1] + weights[t-1, s];   weights[t, s] = p[t, s] q[t, s]

These are the expected weights of training, which add up to one or less. Afterwards a query stops
for good at the first slot, from the last stop on, whose energy is above zero, and attends to that
alone; where it stops nowhere its context is zero, and the next query goes on from the last stop.
All slots are scored for every query, which takes time as soft attention does, not the linear time
that the decisions would allow.
"""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.layers.mechanism import MechanismParts
from attention_jax.layers.monotonic_attention import MonotonicConfig, monotonic_parts

PAPER = (
    "Raffel, Luong, Liu, Weiss and Eck (2017), Online and linear-time attention by enforcing "
    "monotonic alignments, section 2.2 and eq. 11 to 14"
)


@dataclasses.dataclass(frozen=True)
class Config(MonotonicConfig):
    """Monotonic attention.

    Further fields are those of `layers.monotonic_attention.MonotonicConfig`.
    """

    name: str = setting("monotonic")


def build(config: Config, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds monotonic attention for queries and keys of the given depths."""
    return monotonic_parts(config, query_dim, key_dim, lambda energies: energies > 0.0)
