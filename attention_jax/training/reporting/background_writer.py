"""Experiment trackers in a background thread each, so that no network holds up a training."""

import math
import queue
import threading
from collections.abc import Callable, Mapping, Sequence

from attention_jax.errors import UserError
from attention_jax.runs.run_directory import RunDirectory, read_json
from attention_jax.runs.writers import (
    FAILED,
    INTERRUPTED,
    WRITERS,
    Opening,
    Writer,
)

_PATIENCE, _HURRIED = 60.0, 10.0  # seconds; after SIGTERM, half a minute or so is left in all


class BackgroundWriter:
    """Hands metrics to a writer from a thread; if it fails, the writer ends, not the training."""

    def __init__(self, name: str, writer: Writer, say: Callable[[str], None]):
        """Starts the thread.

        Args:
          name: The writer's name, for messages.
          writer: An opened writer, used by the thread alone from now on.
          say: Shows a line on the screen.
        """
        self._name = name
        self._writer = writer
        self._say = say
        self._waiting: queue.SimpleQueue = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"{name} writer", daemon=True)
        self._thread.start()

    def write(self, step: int, split: str, values: Mapping[str, float]) -> None:
        """Queues the metrics that are finite numbers; returns at once."""
        numbers = {
            name: value
            for name, value in values.items()
            if isinstance(value, int | float) and math.isfinite(value)
        }
        # A closure, so that the queue holds calls of any kind; the thread makes them in this order.
        self._waiting.put(lambda: self._writer.write(step, split, numbers))

    def close(self, ending: str, *, patience: float | None = None) -> None:
        """Closes the writer, waiting at most `patience` seconds for what is still queued."""
        if patience is None:
            patience = _HURRIED if ending == INTERRUPTED else _PATIENCE
        self._waiting.put(lambda: self._writer.close(ending))
        self._waiting.put(None)  # ends the thread's loop
        self._thread.join(patience)
        if self._thread.is_alive():
            self._say(f"notice: {self._name} did not end within {patience:.0f} s; left behind")

    def _work(self) -> None:
        while (task := self._waiting.get()) is not None:
            try:
                task()
            # Whatever a service's library raises: the training is worth more than a copy of its
            # metrics.
            except Exception as error:
                self._say(
                    f"notice: {self._name} writes no more ({_one_line(error)}); "
                    "metrics.jsonl goes on"
                )
                return


def open_writers(
    names: Sequence[str], directory: RunDirectory, *, step: int, say: Callable[[str], None]
) -> list[BackgroundWriter]:
    """Opens the writers of a run; one that served the run before continues its record there.

    Args:
      names: Files of the package `writers`.
      directory: The run; `run.json` keeps the services' ids of it.
      step: Updates made so far.
      say: Shows a line on the screen.

    Raises:
      UserError: If a writer cannot be opened for a training that begins. A training that resumes,
        perhaps with nobody watching, goes on without it.
    """
    opened = []
    for name in names:
        known = (read_json(directory.run) or {}).get("writers", {})
        opening = Opening(directory.path, directory.read_config() or {}, step, known.get(name))
        try:
            writer = WRITERS.find(name).open_writer(opening)
        except Exception as error:
            reason = f"{name} cannot be written: {_one_line(error)}"
            if not step:
                for other in opened:
                    other.close(FAILED)
                raise UserError(f"config.training.writers: {reason}") from None
            say(f"notice: {reason}; metrics.jsonl goes on")
            continue
        directory.add_to_group("writers", **{name: writer.run_id})
        say(f"metrics go to {writer.place}")
        opened.append(BackgroundWriter(name, writer, say))
    return opened


def _one_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
