"""Local attention: what is shared by mechanisms that score a window of slots around a centre."""

import dataclasses
from collections.abc import Callable
from typing import Any

from attention_jax.configuration import setting
from attention_jax.layers.inner_score import check_inner_score, inner_score
from attention_jax.layers.mechanism import MECHANISMS, MechanismConfig, MechanismParts
from attention_jax.ops.windows import LocalWindow, Window


@dataclasses.dataclass(frozen=True)
class LocalConfig(MechanismConfig):
    """Local attention config: what those of its mechanisms share.

    Attributes:
      half_width: D: how many slots the window reaches to each side (10 in the paper).
      score: The mechanism that scores inside the window, with its normalizer.
      num_heads: How many heads attend side by side.
    """

    half_width: int = setting(10, at_least=1)
    score: Any = setting({"name": "luong_general"}, named=MECHANISMS.config)
    num_heads: int = setting(1, at_least=1)

    def __post_init__(self) -> None:
        """Rejects what cannot score the slots of a window."""
        check_inner_score(self.score)
        score, size = self.score, 2 * self.half_width + 1
        if getattr(score, "max_positions", size) != size:
            raise ValueError(
                f"score.max_positions: expected {size}, one for each slot of the window, "
                f"found {score.max_positions}"
            )

    @property
    def reads_keys(self) -> bool:  # type: ignore[override]
        """Whether the score inside the window compares queries with keys."""
        return self.score.reads_keys

    @property
    def tells_key_bias(self) -> bool:  # type: ignore[override]
        """Whether what is added to all keys alike changes the weights inside the window."""
        return self.score.tells_key_bias


def local_parts(
    config: LocalConfig,
    query_dim: int,
    key_dim: int,
    place: Callable[..., Window],
    *,
    is_own: bool = False,
) -> MechanismParts:
    """Local attention: builds one head that scores a window.

    Args:
      config: What scores inside the window.
      query_dim: Depth of the queries.
      key_dim: Depth of the keys.
      place: Where the windows lie, see `ops.windows.LocalWindow`.
      is_own: Whether each head places a window of its own.
    """
    inner = inner_score(config.score, query_dim, key_dim)
    spec = dataclasses.replace(inner.spec, pattern=LocalWindow(place, is_own))
    return inner._replace(spec=spec)
