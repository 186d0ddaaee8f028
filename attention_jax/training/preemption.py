"""Preemption: told to stop, finish the step, save, and leave with a code that says why."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import jax
import numpy as np
from jax.experimental import multihost_utils

from attention_jax.devices import processes

_EXIT_CODES = {signal.SIGTERM: processes.RETRY, signal.SIGINT: 130}
# Asking is a collective: every process waits for the slowest one.
_ASK_EVERY_SECONDS = 2.0
_MOST_STEPS_BETWEEN = 100
# Compiled code, such as XLA's compiler, lets no handler of Python's run before it returns; and what
# a handler raises inside of a callback of the garbage collector is dropped there.
_DEAF_SECONDS = 5.0
_LEFT = b"told to stop: nothing was to be saved, the same command continues\n"


class Preempted(SystemExit):
    """The process was told to stop, and what had to be saved is saved; `code` is for the shell."""


class Preemption:
    """Signal handling: notes SIGTERM and SIGINT, so that a step is finished and saved.

    A second signal ends the process at once.
    """

    def __init__(self):
        """Installs nothing yet; see `watching`."""
        self._signal: signal.Signals | None = None  # to this process
        self._agreed: signal.Signals | None = None  # to any process of the run
        self._at_once = False
        # (step, time) of the last question to the other processes, and the step of the next one.
        self._asked: tuple[int, float] | None = None
        self._next_step = 0

    @contextlib.contextmanager
    def watching(self) -> Iterator["Preemption"]:
        """Installs the signal handlers while the block runs, and restores the old ones."""
        with self._listening(), self._handling():
            yield self

    @contextlib.contextmanager
    def at_once(self) -> Iterator[None]:
        """Lets a signal end the block immediately, for work that holds nothing to save.

        Code that lets no handler run, such as a compiler, is given a few seconds.
        """
        self._at_once = True
        try:
            self.leave_if_requested()
            yield
        finally:
            self._at_once = False

    def requested(self, step: int = 0) -> bool:
        """Returns whether any process of the run was told to stop; all get the same answer.

        With several processes this is an all-gather, done about every two seconds. At which step
        follows from the pace of the slowest process, so that all of them ask at the same step.

        Args:
          step: Updates made, the same on every process.
        """
        if jax.process_count() == 1:
            return self._signal is not None
        if step < self._next_step:
            return False
        now = time.monotonic()
        last_step, last_time = self._asked or (step, now)
        seconds_per_step = (now - last_time) / max(step - last_step, 1)
        answers = multihost_utils.process_allgather(
            np.array([self._signal or 0, seconds_per_step], np.float32)
        )
        # The maximum over processes of both: any signal counts, and the slowest pace decides.
        number, seconds_per_step = answers.max(axis=0)
        if number:
            self._agreed = signal.Signals(int(number))
        pace = _ASK_EVERY_SECONDS / max(float(seconds_per_step), 1e-3)
        # The first answer tells no pace yet, for it was asked and timed at the same step.
        distance = 1 if step == last_step else int(min(max(pace, 1), _MOST_STEPS_BETWEEN))
        self._asked, self._next_step = (step, now), step + distance
        return number > 0

    def leave(self) -> None:
        """Raises Preempted with the exit code that goes with the signal."""
        raise Preempted(_EXIT_CODES[self._agreed or self._signal or signal.SIGTERM])

    def leave_if_requested(self) -> None:
        """Raises Preempted if this process was told to stop."""
        if self._signal is not None:
            self.leave()

    @contextlib.contextmanager
    def _handling(self) -> Iterator[None]:
        old = {number: signal.signal(number, self._handle) for number in _EXIT_CODES}
        try:
            yield
        finally:
            for number, handler in old.items():
                signal.signal(number, handler)

    @contextlib.contextmanager
    def _listening(self) -> Iterator[None]:
        """Tells a thread of signals while the block runs, even where Python runs no handler.

        The wakeup file descriptor is written to by the C handler, at once; Python's own handlers
        wait until the main thread is back from compiled code.
        """
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        thread = threading.Thread(target=self._listen, args=(reader,), daemon=True)
        thread.start()
        old = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(old)
            # The thread reads the end of the pipe, and ends; only then may its end be closed.
            os.close(writer)
            thread.join()
            os.close(reader)

    def _listen(self, reader: int) -> None:
        """Ends the process if the block has not ended a few seconds after a signal.

        Only in a block of `at_once`; elsewhere there is something to save.
        """
        while received := os.read(reader, 1):
            if received[0] not in _EXIT_CODES or not self._at_once:
                continue
            deadline = time.monotonic() + _DEAF_SECONDS
            while time.monotonic() < deadline and self._at_once:
                time.sleep(_DEAF_SECONDS / 50)
            if self._at_once:
                os.write(2, _LEFT)  # not `print`, whose lock the main thread may hold
                os._exit(_EXIT_CODES[signal.Signals(received[0])])

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._signal is not None:  # asked twice: do not insist on saving
            os._exit(_EXIT_CODES[signal.Signals(number)])
        self._signal = signal.Signals(number)
        if self._at_once:
            self.leave()


class Interruption(Preemption):
    """Signal handling within another program, such as a notebook, which goes on afterwards.

    Ctrl-C raises KeyboardInterrupt, once the step is finished and saved; a second signal does not
    wait for that, but for compiled code. Nothing ends the process behind its back. Off the main
    thread, where Python takes no handlers, signals are left to the program.
    """

    @contextlib.contextmanager
    def watching(self) -> Iterator["Interruption"]:
        """Installs the signal handlers while the block runs, in the main thread only."""
        is_main = threading.current_thread() is threading.main_thread()
        with self._handling() if is_main else contextlib.nullcontext():
            yield self

    def leave(self) -> None:
        """Raises KeyboardInterrupt after Ctrl-C, and Preempted after SIGTERM."""
        if (self._agreed or self._signal) == signal.SIGINT:
            raise KeyboardInterrupt
        super().leave()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        is_second = self._signal is not None
        self._signal = signal.Signals(number)
        if is_second or self._at_once:
            self.leave()
