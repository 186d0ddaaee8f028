"""What the time of a training goes into, seen from the process that drives it."""

import contextlib
import time
from collections.abc import Iterator

COMPUTE, DATA, SAVE, EVALUATION = "compute", "data", "save", "evaluation"
_PARTS = (COMPUTE, DATA, SAVE, EVALUATION)
_SMALLEST_SHOWN = 0.005


class TimeUse:
    """Splits the time that passes into waiting for data, saving, evaluation, and computing.

    Nothing is asked of a device. A step is started before the one before is waited for, so the
    device computes while the next batch is fetched: computing is all the time that is none of the
    other parts, starting steps and waiting for their results. Where little is left of it, the
    device waits for data.
    """

    def __init__(self):
        """Starts the clock."""
        self._mark = time.monotonic()
        self._since_mark = dict.fromkeys(_PARTS, 0.0)
        self._before_mark = dict.fromkeys(_PARTS, 0.0)

    @contextlib.contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Counts the time of a block as `data`, `save` or `evaluation`."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._since_mark[part] += time.monotonic() - start

    def take(self) -> dict[str, float]:
        """Returns the seconds of every part since the last call; they add up to the time passed."""
        now = time.monotonic()
        seconds, self._since_mark = self._since_mark, dict.fromkeys(_PARTS, 0.0)
        seconds[COMPUTE] = max(0.0, now - self._mark - sum(seconds.values()))
        self._mark = now
        for part, value in seconds.items():
            self._before_mark[part] += value
        return seconds

    def total(self) -> dict[str, float]:
        """Returns the seconds of every part since the clock was started."""
        self.take()
        return dict(self._before_mark)


def format_shares(seconds: dict[str, float]) -> str:
    """Returns the shares of some parts as `compute 93%, data 7%`, the largest first."""
    whole = sum(seconds.values()) or 1.0
    shares = sorted(((value / whole, part) for part, value in seconds.items()), reverse=True)
    return ", ".join(f"{part} {share:.0%}" for share, part in shares if share >= _SMALLEST_SHOWN)
