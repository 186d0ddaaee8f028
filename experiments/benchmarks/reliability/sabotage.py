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
    """Signals that a process sends itself, and when.

    Attributes:
      signals: Numbers of the signals, in order.
      step: The first is sent when this step was started; 0 for the start of the program.
      seconds: Delay after that.
      while_saving: Whether the other signals are sent while the next checkpoint is being written.
      process: The one of several processes that does it; all of them if None.
      mark: A file that is made at the fault; if it exists already, there is no fault.
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
    """Trains as `launch.train` does, with the fault planned."""
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

    # The loop calls `Meter.add` once for each step, right after starting it.
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
        # Not one sleep of the whole time: its end is too coarse beside steps of milliseconds.
        while time.monotonic() < deadline:
            time.sleep(0)
        if fault.mark:
            Path(fault.mark).touch()
        for number in signals:
            os.kill(os.getpid(), number)

    threading.Thread(target=send, daemon=True).start()


if __name__ == "__main__":
    main()
