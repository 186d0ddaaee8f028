"""Training objectives, one file each; a file's name is its name in `config.objectives`.

A file that defines a frozen dataclass `Term` is an objective: the dataclass's fields are its
config, `count(batch)` is what its sum is divided by and `total(output, batch)` is the sum.
"""

from attention_jax.objectives.compose import Objective, build_objective
from attention_jax.objectives.metrics import Pairs, add_pairs

__all__ = ["Objective", "Pairs", "add_pairs", "build_objective"]
