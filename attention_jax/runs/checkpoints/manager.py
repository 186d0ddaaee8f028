"""The Orbax checkpoint manager of a run: which checkpoints it keeps, and when one is committed."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orbax.checkpoint as ocp
from orbax.checkpoint import checkpoint_managers


@dataclasses.dataclass
class LatestThatCount(checkpoint_managers.PreservationPolicy):
    """Retention policy: keeps the newest `number` of the steps for which `counts` holds."""

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
    """Checkpoint retention: combines the policies by which Orbax deletes all other steps.

    Args:
      latest: Number of newest steps to keep, among those that count.
      best: Number of steps with the best metric to keep.
      mode: Whether the best metric is the "min" or the "max".
      counts: Whether a step is one of the newest. The very last step is kept in any case.
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
    """Returns the validation metric that decides which checkpoint is best."""
    return metrics["metric"]


def manager_options(
    *,
    latest: int,
    best: int,
    mode: str,
    counts: Callable[[int], bool],
    on_written: Callable[[], None],
) -> ocp.CheckpointManagerOptions:
    """Returns the options of the manager: asynchronous saving, committed by a marker file.

    Args:
      latest: As for `keep`.
      best: As for `keep`.
      mode: As for `keep`.
      counts: As for `keep`.
      on_written: Called in the background when a step's files are written, before it is committed.
    """
    return ocp.CheckpointManagerOptions(
        preservation_policy=keep(latest, best, mode, counts),
        # Without it metrics are not stored, and lost on resuming to what keeps the best.
        best_fn=metric,
        best_mode=mode,
        # The default, renaming a directory, counts an empty directory as the latest step.
        atomicity_options=ocp.options.AtomicityOptions(mode=ocp.options.AtomicityMode.COMMIT_FILE),
        cleanup_tmp_directories=True,
        async_options=ocp.AsyncOptions(post_finalization_callback=on_written),
    )
