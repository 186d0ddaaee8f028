"""`launch.train` with a fault in it: the drill starts this in place of the real program.

The variable `ATTENTION_JAX_SABOTAGE` holds a `Fault` as JSON. The program itself knows nothing of
faults; its pieces are wrapped from here. A process stops itself, since whoever watches it from
outside would miss steps that take milliseconds.
"""

import dataclasses
import json
import os
import runpy
import threading
import time
from pathlib import Path

VARIABLE = "ATTENTION_JAX_SABOTAGE"


@dataclasses.dataclass(frozen=True)
class Fault:
    """When a process sends itself which signals.

    Attributes:
      signals: Their numbers, one after another.
      step: The first is sent when this step was started; 0 for the start of the program.
      seconds: How long after that.
      while_saving: Whether the others wait for the next checkpoint to be on its way.
      process: Which of several processes does it; all if None.
      mark: A file that is made then, and without which it is not done again.
    """

    signals: tuple[int, ...]
    step: int = 0
    seconds: float = 0.0
    while_saving: bool = False
    process: int | None = None
    mark: str | None = None

    def to_json(self) -> str:
        """Returns what the variable holds."""
        return json.dumps(dataclasses.asdict(self))


def main() -> None:
    """Trains, and lets happen what is to happen."""
    fault = Fault(**json.loads(os.environ[VARIABLE]))
    process = int(os.environ.get("ATTENTION_JAX_PROCESS_ID", "0"))
    if fault.process in (None, process) and not (fault.mark and Path(fault.mark).exists()):
        _plan(fault)
    runpy.run_module("launch.train", run_name="__main__")


def _plan(fault: Fault) -> None:
    first, *others = fault.signals
    if others and fault.while_saving:
        _when_saving(others)
    if not fault.step:
        _send_soon(fault, [first])
        return
    from attention_jax.training.reporting.meter import Meter

    original = Meter.add

    def add(meter: Meter, step: int, metrics: object) -> object:
        if step == fault.step:
            _send_soon(fault, [first] if fault.while_saving else fault.signals)
        return original(meter, step, metrics)

    Meter.add = add


def _when_saving(signals: list[int]) -> None:
    """Sends signals once an interim checkpoint is written in the background."""
    from attention_jax.runs.checkpoints.checkpoint import Checkpointer

    original = Checkpointer.save

    def save(self: Checkpointer, *arguments: object, **named: object) -> None:
        original(self, *arguments, **named)
        if named.get("interim"):
            for number in signals:
                os.kill(os.getpid(), number)

    Checkpointer.save = save


def _send_soon(fault: Fault, signals: object) -> None:
    def send() -> None:
        deadline = time.monotonic() + fault.seconds
        while time.monotonic() < deadline:
            time.sleep(0)
        if fault.mark:
            Path(fault.mark).touch()
        for number in signals:
            os.kill(os.getpid(), number)

    threading.Thread(target=send, daemon=True).start()


if __name__ == "__main__":
    main()
