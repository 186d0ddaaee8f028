"""Asynchronous checkpointing: how long training stands still for it nevertheless."""

import dataclasses
from typing import Any


@dataclasses.dataclass
class SaveCost:
    """The stalls of a process: waiting for the save before, and copying the state off the device.

    Attributes:
      saves: How many there were.
      seconds: How long all of them took together.
      longest: How long the longest took.
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
        """Returns the cost as `run.json` says it.

        Args:
          training_seconds: How long this process has trained, saves included.
        """
        return {
            "saves": self.saves,
            "stall_ms": round(1e3 * self.seconds / max(self.saves, 1), 2),
            "longest_stall_ms": round(1e3 * self.longest, 2),
            "share_of_time": round(self.seconds / max(training_seconds, 1e-9), 6),
        }
