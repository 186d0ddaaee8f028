"""What a run tells while it trains: on the screen, and in `metrics.jsonl`."""

from collections.abc import Iterator, Mapping
from typing import Any, Self

import jax

from attention_jax.objectives import Objective
from attention_jax.objectives.metrics import Totals
from attention_jax.training.assembly import Assembly
from attention_jax.training.config import TrainingConfig
from attention_jax.training.metrics_writer import MetricsWriter
from attention_jax.training.opening import opening_lines
from attention_jax.training.progress import Progress
from attention_jax.training.run_directory import RunDirectory

_SHOWN = ("perplexity", "accuracy", "wer", "per", "bleu", "chrf")


class RunLog:
    """Reports training and validation; only the first process of a run does."""

    def __init__(
        self,
        directory: RunDirectory,
        config: TrainingConfig,
        objective: Objective,
        total_steps: int,
        *,
        step: int,
    ):
        """Continues the files of the run after `step`.

        Args:
          directory: The run.
          config: Its `tensorboard`, `metric` and `log_every_steps` count.
          objective: Turns sums into the values to report.
          total_steps: Length of training in updates.
          step: Updates made so far.
        """
        first = jax.process_index() == 0
        self._objective = objective
        self._metric = config.metric
        self._every = config.log_every_steps
        self._total_steps = total_steps
        self._step = step
        self._progress = Progress(total_steps, step=step, silent=not first)
        self._writer = (
            MetricsWriter(directory.metrics, step=step, tensorboard=config.tensorboard)
            if first
            else None
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()

    def opening(
        self, parts: Assembly, parameters: int, held: Mapping[str, Any], *, seconds: float
    ) -> None:
        """Says what is trained on what, and what takes the time before the first line."""
        for line in opening_lines(
            parts, parameters, held, step=self._step, seconds=seconds, log_every_steps=self._every
        ):
            self.say(line)

    def training(self, window: tuple[int, Totals] | None) -> None:
        """Reports the steps of a window, if one has ended."""
        if window is None:
            return
        step, totals = window
        values = self._objective.summary(totals)
        tokens = totals["nll"][1]
        for line in _skipped(step, totals):
            self.say(line)
        self._write(step, "train", {**values, **self._progress.update(step, values, tokens)})

    def validation(self, step: int, values: Mapping[str, float], *, best: bool) -> None:
        """Reports a validation."""
        self._write(step, "validation", values)
        shown = [name for name in dict.fromkeys((self._metric, *_SHOWN)) if name in values]
        words = "  ".join(f"{name} {values[name]:.4g}" for name in shown)
        self.say(f"step {step}/{self._total_steps}  validation  {words}{'  (best)' * best}")
        self._progress.skip(step)

    def say(self, line: str) -> None:
        """Writes a line to the screen."""
        self._progress.say(line)

    def _write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        if self._writer is not None:
            self._writer.write(step, split, values)


def _skipped(step: int, totals: Totals) -> Iterator[str]:
    """Yields a line where updates of a window were skipped."""
    skipped, updates = totals["skipped"]
    if skipped:
        norms, spikes = totals.get("skipped_norm", (0.0, 0.0))
        reasons = [
            f"{number:g} {reason}"
            for number, reason in (
                (skipped - spikes, "not finite"),
                (spikes, f"with a gradient of norm {norms / max(spikes, 1.0):.4g} that stood out"),
            )
            if number
        ]
        yield (
            f"warning: {skipped:g} of the last {updates:g} updates up to step {step} "
            f"{'was' if skipped == 1 else 'were'} skipped: {', '.join(reasons)}"
        )
