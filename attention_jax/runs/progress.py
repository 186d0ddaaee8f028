"""Progress on the screen: one line that is rewritten on a terminal, new lines elsewhere."""

import collections
import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Any

_LINE_EVERY_SECONDS = 10.0
_RATE_WINDOWS = 20


class StatusLine:
    """Status line: says how far a program is, rewritten on a terminal, now and then elsewhere."""

    def __init__(self, stream: Any = None, every_seconds: float = _LINE_EVERY_SECONDS):
        """Shows nothing yet.

        Args:
          stream: Text stream to write to; the standard error if None.
          every_seconds: Time between two lines where none can be rewritten.
        """
        self._stream = sys.stderr if stream is None else stream
        # In a log file, carriage returns would leave one endless line.
        self._in_place = self._stream.isatty()
        self._every_seconds = every_seconds
        self._width = 0
        self._last_passing = time.monotonic()
        self._last_line = self._last_passing - every_seconds

    def say(self, line: str) -> None:
        """Writes a line that stays."""
        if self._in_place and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._width = 0
        self._stream.write(line + "\n")
        self._stream.flush()

    def show(self, line: str, *, last: bool = False) -> None:
        """Shows the state, in place of the one before; `last` where it should be seen anyhow."""
        now = time.monotonic()
        if self._in_place:
            # Padded to the previous line's width, of which nothing may be left on the terminal.
            self._stream.write("\r" + line.ljust(self._width))
            self._width = len(line)
            self._stream.flush()
        elif last or now - self._last_line >= self._every_seconds:
            self._last_line = now
            self._stream.write(line + "\n")
            self._stream.flush()

    def passing(self, line: str) -> None:
        """Shows a line until the next one; in a log file only if it has been silent for long."""
        now = time.monotonic()
        if self._in_place:
            self.show(line)
        elif now - max(self._last_line, self._last_passing) >= self._every_seconds:
            self._last_passing = now  # what is shown next is shown all the same
            self.say(line)


class Progress:
    """Shows step, loss, tokens per second, the use of time, and the estimated time left."""

    def __init__(
        self,
        total_steps: int,
        *,
        step: int = 0,
        stream: Any = None,
        silent: bool = False,
    ):
        """Starts the clock.

        Args:
          total_steps: Length of training in updates.
          step: Updates made so far.
          stream: Text stream to write to; the standard error if None.
          silent: Whether to write nothing, as every process but the first does.
        """
        self._total_steps = total_steps
        self._silent = silent
        self._line = StatusLine(stream)
        self._windows: collections.deque = collections.deque(maxlen=_RATE_WINDOWS)
        self._mark = (time.monotonic(), step)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Excludes the time of a block, such as a validation, from the rates."""
        start = time.monotonic()
        yield
        then, step = self._mark
        # The start of the window moves forward by as much as the block took.
        self._mark = (then + time.monotonic() - start, step)

    def update(
        self, step: int, metrics: Mapping[str, float], tokens: float, shares: str = ""
    ) -> dict[str, float]:
        """Shows the state after `step` updates.

        Args:
          step: Updates made.
          metrics: Means since the last call, `loss` among them.
          tokens: Target tokens since the last call.
          shares: The use of time since the last call, in words.

        Returns:
          The rates since the last call: `steps_per_second` and `tokens_per_second`.
        """
        now = time.monotonic()
        then, last = self._mark
        self._mark = (now, step)
        seconds = max(now - then, 1e-9)
        rates = {"steps_per_second": (step - last) / seconds, "tokens_per_second": tokens / seconds}
        self._windows.append((step - last, seconds))
        words = [
            f"step {step}/{self._total_steps}",
            f"loss {metrics.get('loss', float('nan')):.4f}",
            f"{rates['tokens_per_second']:,.0f} tokens/s",
            *([shares] if shares else []),
            *self._time_left(step),
        ]
        if not self._silent:
            self._line.show("  ".join(words), last=step >= self._total_steps)
        return rates

    def _time_left(self, step: int) -> list[str]:
        """Estimates the time left from the last windows.

        The oldest of them is left out: in the first window of a training the step is compiled.
        """
        windows = list(self._windows)[1:]
        if not windows:
            return []
        steps, seconds = (sum(part) for part in zip(*windows, strict=True))
        left = (self._total_steps - step) * seconds / max(steps, 1)
        return [f"{format_seconds(left)} left"]

    def passing(self, line: str) -> None:
        """Shows a line until the next one; in a log file only if it has been silent for long."""
        if not self._silent:
            self._line.passing(line)

    def say(self, line: str) -> None:
        """Writes a line that stays."""
        if not self._silent:
            self._line.say(line)


class Counter:
    """A progress counter, done/total, on a terminal only."""

    def __init__(self, what: str, total: int, *, stream: Any = None):
        """Shows nothing yet.

        Args:
          what: The activity, in words.
          total: Number of things to do.
          stream: Text stream to write to; the standard error if None.
        """
        self._what = what
        self._total = total
        self._stream = sys.stderr if stream is None else stream
        self._width = 0

    def update(self, done: int) -> None:
        """Shows that `done` things are done."""
        if self._stream.isatty():
            line = f"{self._what} {done}/{self._total}"
            self._width = max(self._width, len(line))
            self._stream.write("\r" + line)
            self._stream.flush()

    def close(self) -> None:
        """Removes the line."""
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()


def format_seconds(seconds: float) -> str:
    """Formats a duration: 45s, 3m 20s, 2h 05m."""
    seconds = int(round(seconds))
    if seconds < 60:
        return f"{seconds}s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}m {seconds:02d}s"
    return f"{minutes // 60}h {minutes % 60:02d}m"
