"""Wall time of a training by part, as the host process sees it."""

import contextlib
import time
from collections.abc import Iterator, Mapping

COMPUTE, COMPILATION, DATA = "compute", "compilation", "data"
SAVE, EVALUATION = "save", "evaluation"
_PARTS = (COMPUTE, COMPILATION, DATA, SAVE, EVALUATION)
_SMALLEST_SHOWN = 0.005


class TimeUse:
    """Splits wall time into compilation, waiting for data, saving, evaluation, and computing.

    No device is synchronised for it. Steps are dispatched asynchronously, so that the device
    computes while the next batch is fetched; `compute` is therefore what remains: dispatching
    steps and waiting for their results. If little remains, the device is waiting for data.
    """

    def __init__(self, spent: Mapping[str, float] | None = None):
        """Starts the clock.

        Args:
          spent: Seconds of every part in earlier processes of the run.
        """
        self._mark = time.monotonic()
        self._since_mark = dict.fromkeys(_PARTS, 0.0)
        self._before_mark = {**dict.fromkeys(_PARTS, 0.0), **(spent or {})}

    @contextlib.contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Counts the time of a block as `compilation`, `data`, `save` or `evaluation`."""
        start = time.monotonic()
        try:
            yield
        finally:
            self._since_mark[part] += time.monotonic() - start

    def take(self) -> dict[str, float]:
        """Returns the seconds of every part since the last call; they add up to the time passed."""
        now = time.monotonic()
        seconds, self._before_mark = self._since(now), self._until(now)
        self._since_mark, self._mark = dict.fromkeys(_PARTS, 0.0), now
        return seconds

    def total(self) -> dict[str, float]:
        """Returns the seconds of every part, what was spent before among them."""
        return self._until(time.monotonic())

    def _since(self, now: float) -> dict[str, float]:
        # `compute` is never measured, so its entry is 0 and the sum is that of the other parts.
        other = sum(self._since_mark.values())
        return {**self._since_mark, COMPUTE: max(0.0, now - self._mark - other)}

    def _until(self, now: float) -> dict[str, float]:
        return {part: self._before_mark[part] + value for part, value in self._since(now).items()}


def format_shares(seconds: dict[str, float]) -> str:
    """Returns the shares of some parts as `compute 93%, data 7%`, the largest first."""
    whole = sum(seconds.values()) or 1.0
    shares = sorted(((value / whole, part) for part, value in seconds.items()), reverse=True)
    return ", ".join(f"{part} {share:.0%}" for share, part in shares if share >= _SMALLEST_SHOWN)
