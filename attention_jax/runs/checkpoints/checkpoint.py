"""Checkpoints: saved asynchronously, verified when they are read, and never half there.

A step holds the training state, the position in the data, the resolved config, and the host's
own state (best metric, patience). Orbax writes and deletes the steps; a manifest of checksums is
added before a step is committed, and verified before it is restored. A damaged step is reported in
one line and set aside, and the newest good one before it is restored instead. An interim step, one
that only an interruption asked for, is kept while it is the newest, beside those that count.
"""

import contextlib
import dataclasses
import math
import pathlib
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Self

import orbax.checkpoint as ocp

from attention_jax.devices import processes
from attention_jax.errors import CheckpointError
from attention_jax.paths import expanded, plainly_named
from attention_jax.runs.checkpoints import manifest
from attention_jax.runs.checkpoints.manager import manager_options
from attention_jax.runs.checkpoints.named_arrays import nested_by_name
from attention_jax.runs.checkpoints.reading import (
    Checkpoint,
    Unreadable,
    one_line,
    read_checkpoint,
)
from attention_jax.runs.checkpoints.step_folders import COMMITTED, StepFolders


@dataclasses.dataclass
class SaveCost:
    """Asynchronous checkpointing: for how long saving has held up training nevertheless.

    A stall is the wait for the save before, and the copy of the state off the device.

    Attributes:
      saves: Number of stalls.
      seconds: Their total.
      longest: The longest one, in seconds.
    """

    saves: int = 0
    seconds: float = 0.0
    longest: float = 0.0

    def add(self, seconds: float) -> None:
        """Counts a stall."""
        self.saves += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)

    def describe(self, training_seconds: float) -> dict[str, Any]:
        """Returns the cost as `run.json` has it.

        Args:
          training_seconds: How long this process has trained, saves included.
        """
        return {
            "saves": self.saves,
            "stall_ms": round(1e3 * self.seconds / max(self.saves, 1), 2),
            "longest_stall_ms": round(1e3 * self.longest, 2),
            "share_of_time": round(self.seconds / max(training_seconds, 1e-9), 6),
        }


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class Checkpointer:
    """Saves and restores the checkpoints of one run.

    Attributes:
      cost: How long saving has held up training so far.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        *,
        keep_latest: int = 2,
        keep_best: int = 1,
        mode: str = "min",
        read_only: bool = False,
        report: Callable[[str], None] = _report,
    ):
        """Opens a directory of checkpoints; nothing is touched before the first save.

        Args:
          directory: Holds one folder per step.
          keep_latest: Number of newest steps to keep, beside an interim one.
          keep_best: Number of steps with the best validation metric to keep.
          mode: Whether the best metric is the "min" or the "max".
          read_only: Whether nothing may be written: damaged steps are not set aside.
          report: Takes a warning, one line, when a checkpoint is found damaged.
        """
        self.directory = expanded(directory).absolute()
        self._folders = StepFolders(self.directory)
        self._keep_latest = keep_latest
        self._keep_best = keep_best
        self._mode = mode
        self._read_only = read_only
        self._report = report
        self._manager: ocp.CheckpointManager | None = None
        # Array storage trips over unusual characters in a path; see `plainly_named`.
        self._plain_name = contextlib.ExitStack()
        # The step whose saving is under way, and the steps that are interim ones.
        self._saving: int | None = None
        self._interim: set[int] = set()
        self.cost = SaveCost()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def steps(self) -> list[int]:
        """Returns the steps whose saving was completed, damaged or not, oldest first."""
        return self._folders.completed()

    def counting_steps(self) -> list[int]:
        """Returns the completed steps without the interim ones, oldest first."""
        interim = self._folders.interim()
        return [step for step in self.steps() if step not in interim]

    def save(
        self,
        step: int,
        state: Any,
        *,
        data: Mapping[str, Any],
        config: Mapping[str, Any],
        host: Mapping[str, Any],
        metric: float | None = None,
        interim: bool = False,
    ) -> None:
        """Copies the state off the device and starts writing a checkpoint in the background.

        Args:
          step: Number of updates made.
          state: The training state, a pytree of arrays.
          data: Position of the data iterator, plain JSON.
          config: The resolved config, plain JSON.
          host: The trainer's own state, plain JSON.
          metric: Validation metric of this step, if it has one; decides which steps are best.
          interim: Whether the step does not count among the newest: one that only an interruption
            asked for or, under checkpoint averaging, one that only validated best; see also
            `make_interim`.

        Raises:
          CheckpointError: If this or the previous save failed.
        """
        started = time.monotonic()
        self.wait()  # one save at a time, so that a failure is reported for its own step
        failure = f"checkpoint step {step} in {self.directory} could not be saved"
        manager = self._open_for_writing(failure)
        with one_line(failure):
            # Before the save: the marker is written by a callback in the background.
            (self._interim.add if interim else self._interim.discard)(step)
            manager.save(
                step,
                args=ocp.args.Composite(
                    state=ocp.args.StandardSave(nested_by_name(state)),
                    data=ocp.args.JsonSave(dict(data)),
                    config=ocp.args.JsonSave(dict(config)),
                    host=ocp.args.JsonSave(dict(host)),
                ),
                metrics=None if metric is None or not math.isfinite(metric) else {"metric": metric},
                # Whether a step is due was decided by the caller; Orbax has rules of its own.
                force=True,
            )
        self._saving = step
        self.cost.add(time.monotonic() - started)

    def make_interim(self, step: int) -> None:
        """Marks a step that was just restored as an interim one from now on; see `save`."""
        if processes.is_first() and not self._read_only:
            with one_line(f"checkpoint step {step} in {self.directory} could not be marked"):
                self._folders.make_interim(step)

    def wait(self) -> None:
        """Waits for the save under way and checks that its files are there.

        Raises:
          CheckpointError: If it failed.
        """
        if self._manager is None or self._saving is None:
            return
        with processes.agreed():
            with one_line(self._failure()):
                self._manager.wait_until_finished()
                self._manager.check_for_errors()
            # On a full disk, Orbax may report no error although files are missing.
            sealed = self._folders.path(self._saving, manifest.NAME)
            if processes.is_first() and not sealed.exists():
                free = shutil.disk_usage(self.directory).free / 1e6
                raise CheckpointError(
                    f"{self._failure()}: its files are not there; the disk has {free:.1f} MB left"
                )
        self._saving = None

    def restore(
        self, like: Any, step: int | None = None, *, exact: bool = False
    ) -> Checkpoint | None:
        """Restores a step, or the newest good one before it.

        Args:
          like: Pytree of `jax.ShapeDtypeStruct` with the shardings that the state shall have.
          step: The step; the newest if None.
          exact: Whether only this step will do.

        Returns:
          The checkpoint, or None if there is none.

        Raises:
          CheckpointError: If there are checkpoints but no good one, or they are of another model.
        """
        self.wait()
        # The first process looks: on shared storage, others may not see the same files yet.
        steps, aside = processes.from_first(lambda: (self.steps(), self._folders.damaged()))
        candidates = [
            s for s in reversed(steps) if s == step or not exact and (step is None or s < step)
        ]
        self._mention_unfinished(newer_than=candidates[0] if candidates else -1)
        damage = ""
        for candidate in candidates:
            found = self._attempt(candidate, like)
            if isinstance(found, Checkpoint):
                return found
            message = f"checkpoint step {candidate} in {self.directory} is damaged: {found}"
            damage = damage or message
            if processes.is_first():
                if candidate != candidates[-1]:
                    self._report(f"warning: {message}; an older one is taken")
                # An open manager knows the step and would go on counting it.
                if self._manager is None and not self._read_only:
                    self._folders.set_aside(candidate)
        if candidates:
            raise CheckpointError(damage if exact else f"{damage}; there is no good one before it")
        if aside:
            raise CheckpointError(
                f"{self.directory} holds damaged checkpoints only, {', '.join(aside)}; "
                "remove the directory to start from the beginning"
            )
        if step is not None:
            before = "" if exact else " or before"
            raise CheckpointError(f"{self.directory} has no checkpoint of step {step}{before}")
        return None

    def restore_each(self, like: Any, newest: int) -> Iterator[Checkpoint]:
        """Yields the good checkpoints, newest first and without interim ones, to be averaged.

        Args:
          like: As for `restore`.
          newest: The step to begin with.

        Raises:
          CheckpointError: If they are of another model.
        """
        for step in reversed(processes.from_first(self.counting_steps)):
            if step > newest:
                continue
            found = self._attempt(step, like)
            if isinstance(found, Checkpoint):
                yield found
            elif processes.is_first():
                self._report(
                    f"warning: checkpoint step {step} in {self.directory} is damaged: {found}; "
                    "it is left out"
                )

    def close(self) -> None:
        """Waits for the save under way, checks it, and stops the background threads."""
        try:
            self.wait()
        finally:
            if self._manager is not None:
                # The save was checked by `wait`; what closing has to say would hide its error.
                with contextlib.suppress(Exception):
                    self._manager.close()
                self._manager = None
            self._plain_name.close()

    def _failure(self) -> str:
        return f"checkpoint step {self._saving} in {self.directory} could not be saved"

    def _open_for_writing(self, failure: str) -> ocp.CheckpointManager:
        if self._manager is not None:
            return self._manager

        def prepare() -> set[int]:
            with one_line(failure):
                self.directory.mkdir(parents=True, exist_ok=True)
                for step in self._folders.unfinished():
                    shutil.rmtree(self._folders.path(step))  # left by a process killed meanwhile
                return self._folders.interim()

        self._interim = processes.from_first(prepare)
        options = manager_options(
            latest=self._keep_latest,
            best=self._keep_best,
            mode=self._mode,
            counts=lambda step: step not in self._interim,
            on_written=self._write_manifest,
        )
        with one_line(failure):
            plain = self._plain_name.enter_context(plainly_named(self.directory))
            self._manager = ocp.CheckpointManager(plain, options=options)
        return self._manager

    def _write_manifest(self) -> None:
        """Runs in the background when a step's files are written, just before it is committed.

        Whatever is in the folder but not committed is that step; there is one at a time.
        """
        if processes.is_first():
            for step in self._folders.unfinished():
                self._folders.seal(step, step in self._interim)

    def _mention_unfinished(self, newer_than: int) -> None:
        for step in self._folders.unfinished():
            if step > newer_than and processes.is_first():
                self._report(
                    f"warning: checkpoint step {step} in {self.directory} is passed over: "
                    f"it has no {COMMITTED}, so its saving was interrupted"
                )

    def _attempt(self, step: int, like: Any) -> Checkpoint | str:
        """Restores a step, or says what is wrong with it; the same on all processes."""
        damage = processes.from_first(lambda: self._folders.damage(step))
        if damage is not None:
            return damage
        found: Checkpoint | str
        try:
            found = read_checkpoint(self._folders.path(step), step, like)
        except Unreadable as error:
            found = str(error)
        # One process may fail to read its shards while others succeed: then all of them give it up.
        reasons = processes.gather(found if isinstance(found, str) else None)
        return next(filter(None, reasons), found)
