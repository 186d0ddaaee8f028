"""Running metrics: the means of training steps between two log lines."""

from collections.abc import Mapping

import jax

from attention_jax.errors import DivergenceError
from attention_jax.objectives import Pairs
from attention_jax.objectives.metrics import Totals


class Meter:
    """Adds up the metrics of steps, reading the metrics of a step one step late.

    By then the next step is queued, so the device never waits for the host.
    """

    def __init__(self, every: int, *, max_consecutive_skipped: int, skipped_in_a_row: int = 0):
        """Starts an empty window.

        Args:
          every: Steps in a window; windows end at multiples of it.
          max_consecutive_skipped: Training ends after so many skipped updates in a row.
          skipped_in_a_row: Updates that were skipped just before the first step here.
        """
        self._every = every
        self._limit = max_consecutive_skipped
        self._in_a_row = skipped_in_a_row
        self._step = 0
        self._pending: tuple[int, Pairs] | None = None
        self._totals: dict[str, tuple[float, float]] = {}

    def add(self, step: int, metrics: Pairs) -> tuple[int, Totals] | None:
        """Takes the metrics of a step that was started, and reads those of the step before.

        Returns:
          (step, totals) if the step before ended a window, else None.

        Raises:
          DivergenceError: If too many updates were skipped one after another.
        """
        window = self.flush()
        self._pending = (step, metrics)
        return window

    def flush(self, *, end: bool = False) -> tuple[int, Totals] | None:
        """Reads what is pending, waiting for it; returns and raises as `add`.

        Args:
          end: Whether training ends here, and the window with it, however short it is.
        """
        if self._pending is not None:
            self._read(*self._pending)
            self._pending = None
            end = end or self._step % self._every == 0
        if not (end and self._totals):
            return None
        totals, self._totals = self._totals, {}
        return self._step, totals

    def _read(self, step: int, metrics: Pairs) -> None:
        # The only place where training waits for a device.
        values = jax.device_get(metrics)
        for name, (total, count) in values.items():
            old_total, old_count = self._totals.get(name, (0.0, 0.0))
            self._totals[name] = (old_total + float(total), old_count + float(count))
        self._step = step
        self._watch(step, values)

    def _watch(self, step: int, values: Mapping) -> None:
        # `skipped` is a (sum, count) pair like every metric: 1 or 0 of one update.
        self._in_a_row = self._in_a_row + 1 if values["skipped"][0] > 0 else 0
        if self._in_a_row >= self._limit:
            raise DivergenceError(
                f"training stopped at step {step}: the loss or its gradient was not finite"
                f"{' or stood out' if 'skipped_norm' in values else ''} "
                f"{self._in_a_row} times in a row, and every such update was skipped"
            )
