"""What a run tells while it trains: on the screen, in `metrics.jsonl`, and to other writers."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import jax

from attention_jax.devices.background_compilation import BackgroundCompilation, shapes_of
from attention_jax.objectives.metrics import Totals
from attention_jax.runs.config import TrainingConfig
from attention_jax.runs.diagnoses import diagnosed
from attention_jax.runs.progress import Progress, format_seconds
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.runs.writers import FAILED, FINISHED, INTERRUPTED
from attention_jax.training.assembly import Assembly
from attention_jax.training.preemption import Preempted
from attention_jax.training.reporting.background_writer import open_writers
from attention_jax.training.reporting.memory import memory_in_use
from attention_jax.training.reporting.metrics_writer import MetricsWriter
from attention_jax.training.reporting.profiling import Profile, ProfileSteps
from attention_jax.training.reporting.start_report import start_lines
from attention_jax.training.reporting.time_use import (
    COMPILATION,
    EVALUATION,
    TimeUse,
    format_shares,
)
from attention_jax.types import Array

_PRINTED = ("perplexity", "accuracy")  # then those of the task


class RunLog:
    """Reports training and validation; silent on every process but the first."""

    def __init__(
        self,
        directory: RunDirectory,
        config: TrainingConfig,
        parts: Assembly,
        *,
        step: int,
        time_use: Mapping[str, float] | None = None,
        profiled: ProfileSteps | None = None,
    ):
        """Continues the files of the run after `step`.

        Args:
          directory: The run.
          config: Names the `writers`, the watched `metric` and the distance of log lines.
          parts: The training.
          step: Updates made so far.
          time_use: Seconds by part in earlier processes of this run; see `TimeUse`.
          profiled: The steps of which the profiler writes a trace, if any.

        Raises:
          UserError: If a writer cannot be opened, or the training does not have those steps.
        """
        first = jax.process_index() == 0
        self._parts = parts
        self._config = config
        self._step = step
        self._diagnosed: set[str] = set()  # what was said, and below what was said to be over
        self._over: set[str] = set()
        self._waited: dict[tuple, float] = {}  # seconds for a compiler, by the shapes of a batch
        self._time_use = TimeUse(time_use)
        self._progress = Progress(parts.total_steps, step=step, silent=not first)
        self._profile = Profile(
            profiled if first else None, directory.profile, parts.total_steps, self.say
        )
        names = config.writers if first else ()
        self._writers = open_writers(names, directory, step=step, say=self.say)
        self._metrics = MetricsWriter(directory.metrics, step=step) if first else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, *error: object) -> None:
        """Closes all files, and tells experiment trackers how training ended."""
        self._profile.close()
        if self._metrics is not None:
            self._metrics.close()
        # Trackers mark an interrupted run as one to be continued, and a failed one as failed.
        interrupted = kind is not None and issubclass(kind, Preempted | KeyboardInterrupt)
        for writer in self._writers:
            writer.close(FINISHED if kind is None else INTERRUPTED if interrupted else FAILED)

    def start(self, parameters: int, sharding: Mapping[str, Any], *, seconds: float) -> None:
        """Says what is trained on which devices, and that the first step is being compiled."""
        for line in start_lines(
            self._parts, parameters, sharding,
            step=self._step, seconds=seconds, settings=self._config,
        ):
            self.say(line)

    def training(self, window: tuple[int, Totals] | None) -> None:
        """Reports the means over a window of steps, if one has ended."""
        if window is None:
            return
        step, totals = window
        values = self._parts.objective.summary(totals)
        for line in _skipped(step, totals):
            self.say(line)
        seconds = self._time_use.take()
        # Tokens per second are target tokens: the count of the NLL.
        rates = self._progress.update(step, values, totals["nll"][1], format_shares(seconds))
        spent = {f"seconds/{part}": value for part, value in seconds.items()}
        memory = memory_in_use(jax.local_devices())
        self._write(step, "train", {**values, **rates, **spent, **memory})

    def validation(self, step: int, values: Mapping[str, float], *, best: bool) -> None:
        """Reports the metrics of a validation, and whether it is the best so far."""
        self._write(step, "validation", values)
        # A dict for its order without repetition: the watched metric first.
        names = dict.fromkeys((self._config.metric, *_PRINTED, *self._parts.task.task.printed))
        words = "  ".join(f"{name} {values[name]:.4g}" for name in names if name in values)
        self.say(f"step {step}/{self._parts.total_steps}  validation  {words}{'  (best)' * best}")
        found = dict(diagnosed(values, step / self._parts.total_steps))
        for name, line in found.items():
            if name not in self._diagnosed:  # once is enough
                self.say(line)
        for name in sorted(self._diagnosed - found.keys() - self._over):
            self.say(f"no longer: {name}")
            self._over.add(name)
        self._diagnosed |= found.keys()

    def timed(self, part: str, function: Callable, *arguments: Any, **keywords: Any) -> Any:
        """Calls a function and counts its time under `data`, `save` or `evaluation`."""
        no_training = self._progress.paused() if part == EVALUATION else contextlib.nullcontext()
        with self._time_use.of(part), no_training:
            return function(*arguments, **keywords)

    def dispatched(
        self, step: int, train_step: BackgroundCompilation, state: Any, batch: Any, rng: Array
    ) -> Any:
        """Dispatches a train step, within the profiler's trace if the step is to be traced."""
        with self._profile.step(step, state), self._compiling(train_step, batch):
            return train_step(state, batch, rng)

    @contextlib.contextmanager
    def _compiling(self, train_step: BackgroundCompilation, batch: Any) -> Iterator[None]:
        """Surrounds the dispatch of a step, which may wait until such batches are compiled for.

        That is shown while it lasts, is no part of the rates, and counts as compilation.
        """
        shapes = shapes_of(batch)
        if shapes in self._waited:
            yield
            return
        so_far = sum(self._waited.values())
        number, total = len(self._waited) + 1, len(self._parts.batches.buckets)
        if not train_step.is_ready(batch):
            self._progress.passing(
                f"compiling batch shape {number} of {total}"
                f"{f', waited {format_seconds(so_far)} so far' if so_far >= 0.5 else ''}"
            )
        began = time.monotonic()
        with self._time_use.of(COMPILATION), self._progress.paused():
            yield
        self._waited[shapes] = time.monotonic() - began
        if number == total > 1:
            waited = format_seconds(sum(self._waited.values()))
            self.say(f"the update is compiled for all {total} batch shapes: {waited} of waiting")

    def time_use(self) -> dict[str, float]:
        """Returns the seconds by part so far, earlier processes included."""
        return self._time_use.total()

    def end(self) -> dict[str, float]:
        """Says what the time went into; returns the seconds by part."""
        seconds = self.time_use()
        whole = format_seconds(sum(seconds.values()))
        self.say(f"trained for {whole}: {format_shares(seconds)}")
        return seconds

    def say(self, line: str) -> None:
        """Writes a line to the screen."""
        self._progress.say(line)

    def _write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        if self._metrics is not None:
            self._metrics.write(step, split, values)
        for writer in self._writers:
            writer.write(step, split, values)


def _skipped(step: int, totals: Totals) -> Iterator[str]:
    """Yields a warning if updates of a window were skipped, saying how many and why."""
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
