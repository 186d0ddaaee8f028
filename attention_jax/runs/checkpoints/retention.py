"""Checkpoint retention: the newest and the best are kept, and the last of all."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orbax.checkpoint import checkpoint_managers


@dataclasses.dataclass
class LatestThatCount(checkpoint_managers.PreservationPolicy):
    """Keeps the newest `number` of those steps for which `counts` holds."""

    number: int
    counts: Callable[[int], bool]

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> list[bool]:
        """Returns for each checkpoint, the oldest first, whether it is kept."""
        steps = [checkpoint.step for checkpoint in checkpoints]
        kept = [step for step in steps if self.counts(step)][-self.number :]
        return [step in kept for step in steps]


def keep(
    latest: int, best: int, mode: str, counts: Callable[[int], bool]
) -> checkpoint_managers.AnyPreservationPolicy:
    """Returns what Orbax asks which checkpoints to keep.

    Args:
      latest: Number of the newest to keep, among those that count.
      best: Number of those with the best metric to keep.
      mode: Whether the best metric is the "min" or the "max".
      counts: Whether a step is one of the newest; the last of all is kept in any case.
    """
    return checkpoint_managers.AnyPreservationPolicy(
        [
            checkpoint_managers.LatestN(1),
            LatestThatCount(latest, counts),
            checkpoint_managers.BestN(
                n=best,
                get_metric_fn=metric,
                reverse=mode == "min",
                keep_checkpoints_without_metrics=False,
            ),
        ]
    )


def metric(metrics: Mapping[str, float]) -> float:
    """Returns what decides which checkpoint is best."""
    return metrics["metric"]
