"""The worker's half of a measurement: set up, report, then compute only when asked.

A worker reads one command a line from its standard input and answers one JSON object a line:

  run K    repeats its work K times and answers {"seconds": ...} for all of them together
  quit     answers {"peak_rss_mib": ..., "steady_rss_mib": ...} and ends
"""

import ctypes
import gc
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO

from attention_jax.training.reporting.memory import peak_resident_bytes, resident_bytes


def open_channel() -> TextIO:
    """Takes standard output for the answers; whatever libraries print goes to standard error."""
    channel = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    sys.stdout.flush()
    # On the level of file descriptors, for libraries in C print, too.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return channel


def read_task() -> dict[str, Any]:
    """Returns what this worker is to do: the JSON object that is its only argument."""
    return json.loads(sys.argv[1])


def serve(
    channel: TextIO,
    work: Callable[[], Any],
    finish: Callable[[], Any] = lambda: None,
    **ready: Any,
) -> None:
    """Answers commands until told to quit.

    Args:
      channel: From `open_channel`.
      work: Does the work once; it may return before the work is done.
      finish: Waits for the end of all work.
      **ready: What the driver is told first, such as the units of work of one repetition.
    """
    reset_peak_memory()
    answer(channel, ready)
    for line in sys.stdin:
        command, *arguments = line.split()
        if command == "quit":
            break
        gc.collect()  # now, and not within the measured time
        start = time.perf_counter()
        for _ in range(int(arguments[0])):
            work()
        finish()
        answer(channel, {"seconds": time.perf_counter() - start})
    gc.collect()
    steady = resident_memory()
    answer(channel, {"peak_rss_mib": peak_memory(), "steady_rss_mib": steady})


def rise_of_memory(work: Callable[[], Any]) -> float:
    """Does the work once, to warm up; returns the rise of the resident set meanwhile (MiB)."""
    before = resident_memory()
    reset_peak_memory()
    work()
    return peak_memory() - before


def answer(channel: TextIO, message: dict[str, Any]) -> None:
    """Sends one object to the driver."""
    print(json.dumps(message), file=channel, flush=True)


def reset_peak_memory() -> None:
    """Forgets the peak so far where the system can, so that set-up does not count.

    What a compiler has freed is given back first: the C library would keep it for the work.
    """
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        pass


def peak_memory() -> float:
    """Returns the largest resident set since the last reset (MiB)."""
    return peak_resident_bytes() / 2**20


def resident_memory() -> float:
    """Returns the present resident set (MiB), or NaN where the system does not say."""
    return resident_bytes() / 2**20
