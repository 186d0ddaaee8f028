"""Inner scores: the score of one mechanism, without its normalizer, inside of another mechanism.

Local attention scores the slots of a window with it, monotonic attention the slots that it reads.
"""

from collections.abc import Mapping
from typing import Any

from attention_jax.layers.mechanism import MechanismConfig, MechanismParts, build_parts


def check_inner_score(score: MechanismConfig, field: str = "score") -> None:
    """Raises `ValueError`, naming the field, for what is no score over slots that carries nothing.

    Args:
      score: The mechanism whose score it is.
      field: The name that it has in the config of the other mechanism.
    """
    if not hasattr(score, "normalizer"):
        raise ValueError(f"{field}.name: expected a score over all slots, found {score.name!r}")
    num_heads = getattr(score, "num_heads", 1)  # a config without the field is of one head
    if num_heads != 1:
        raise ValueError(
            f"{field}.num_heads: expected 1, for num_heads beside it counts, found {num_heads}"
        )
    # Built for depths of one, only to see what it carries.
    carried = [name for name, _ in inner_score(score, 1, 1).spec.trackers]
    if carried:
        raise ValueError(
            f"{field}.name: expected a score that carries nothing from query to query, found "
            f"{score.name!r}, which carries {' and '.join(carried)}"
        )


def inner_score(score: MechanismConfig, query_dim: int, key_dim: int) -> MechanismParts:
    """Builds one head that scores slots; it is told nothing of its model but depths."""
    sizes: Mapping[str, Any] = dict.fromkeys(score.needs, 1)
    return build_parts(score, query_dim, key_dim, sizes)
