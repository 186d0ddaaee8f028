"""Profiling: a JAX trace of some training steps, for TensorBoard, XProf or Perfetto."""

import contextlib
import dataclasses
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any, Self

import jax

from attention_jax.errors import UserError


@dataclasses.dataclass(frozen=True)
class ProfileSteps:
    """The profiled steps, `first` to `last`, both included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Reads `FIRST:LAST`.

        Raises:
          UserError: If it is something else.
        """
        match = re.fullmatch(r"(\d+):(\d+)", text)
        if not match or not 1 <= int(match[1]) <= int(match[2]):
            raise UserError(
                f"--profile_steps: expected FIRST:LAST with 1 <= FIRST <= LAST, found {text!r}"
            )
        return cls(int(match[1]), int(match[2]))


class Profile:
    """The JAX profiler around some steps of a training."""

    def __init__(
        self,
        steps: ProfileSteps | None,
        directory: pathlib.Path,
        total_steps: int,
        say: Callable[[str], None],
    ):
        """Starts nothing yet.

        Args:
          steps: Those to trace, or None for none.
          directory: Where the trace goes.
          total_steps: Length of training in updates.
          say: Takes a line for people.

        Raises:
          UserError: If the training does not have all of the steps.
        """
        if steps is not None and steps.last > total_steps:
            raise UserError(
                f"--profile_steps: expected steps of this training, from 1 to {total_steps}, "
                f"found {steps.first}:{steps.last}"
            )
        self._steps = steps
        self._directory = directory
        self._say = say
        self._is_tracing = False
        self._has_begun = False

    @contextlib.contextmanager
    def step(self, step: int, state: Any) -> Iterator[None]:
        """Surrounds the dispatch of a step, starting and stopping the trace where it is due.

        Args:
          step: The step's number.
          state: The training state before it. Before the first and after the last traced step it
            is waited for, so that the trace holds these steps whole and nothing else.
        """
        wanted = self._steps is not None and self._steps.first <= step <= self._steps.last
        if wanted != self._is_tracing:
            jax.block_until_ready(state)
            self._start() if wanted else self._stop()
        if not self._is_tracing:
            yield
            return
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            yield

    def close(self) -> None:
        """Stops a trace that is still running; says so if no step was traced."""
        if self._is_tracing:
            self._stop()
        elif self._steps is not None and not self._has_begun:
            steps = f"{self._steps.first} to {self._steps.last}"
            self._say(f"notice: no profile: none of the steps {steps} was trained here")

    def _start(self) -> None:
        try:
            jax.profiler.start_trace(str(self._directory))
            self._is_tracing = self._has_begun = True
        except (OSError, RuntimeError) as error:
            self._give_up(error)

    def _stop(self) -> None:
        self._is_tracing = False
        try:
            jax.profiler.stop_trace()
            self._say(f"profile of steps {self._steps.first} to {self._steps.last}: "
                      f"{self._directory}, for TensorBoard or XProf")  # fmt: skip
        except (OSError, RuntimeError) as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        """Gives up the profile, not the training."""
        self._steps = None
        self._say(f"notice: no profile: {' '.join(str(error).split())}")
