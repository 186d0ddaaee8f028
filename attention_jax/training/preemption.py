"""Being told to stop: finish the step, save, and leave with a code that says why."""

import contextlib
import os
import signal
from collections.abc import Iterator
from types import FrameType

import jax
import numpy as np
from jax.experimental import multihost_utils

# EX_TEMPFAIL: "try again later", what schedulers are told to requeue a job for.
_EXIT_CODES = {signal.SIGTERM: 75, signal.SIGINT: 130}
_ASK_EVERY_STEPS = 10


class Preempted(SystemExit):
    """The process was told to stop, and what had to be saved is saved; `code` is for the shell."""


class Preemption:
    """Notes SIGTERM and SIGINT instead of dying of them; a second signal is not waited for."""

    def __init__(self):
        """Installs nothing yet; see `watching`."""
        self._signal: signal.Signals | None = None
        self._at_once = False

    @contextlib.contextmanager
    def watching(self) -> Iterator["Preemption"]:
        """Watches for signals while the block runs."""
        old = {number: signal.signal(number, self._handle) for number in _EXIT_CODES}
        try:
            yield self
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Lets a signal end the block immediately, for work that holds nothing to save."""
        self._at_once = True
        try:
            self.leave_if_requested()
            yield
        finally:
            self._at_once = False

    def requested(self, step: int = 0) -> bool:
        """Returns whether any process of the run was told to stop; all get the same answer.

        Several processes have to talk for that, so they do it at some steps only.
        """
        told = self._signal is not None
        if jax.process_count() == 1:
            return told
        if step % _ASK_EVERY_STEPS:
            return False
        return bool(np.any(multihost_utils.process_allgather(np.asarray(told))))

    def leave(self) -> None:
        """Raises Preempted with the exit code that goes with the signal."""
        raise Preempted(_EXIT_CODES[self._signal or signal.SIGTERM])

    def leave_if_requested(self) -> None:
        """Raises Preempted if this process was told to stop."""
        if self._signal is not None:
            self.leave()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:  # asked twice: do not insist on saving
            os._exit(_EXIT_CODES[signal.Signals(number)])
        self._signal = signal.Signals(number)
        if self._at_once:
            self.leave()
