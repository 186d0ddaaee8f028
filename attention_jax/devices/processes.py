"""Multi-process training: how processes meet, agree, and notice that one is gone.

Environment variables tell a process its place. `ATTENTION_JAX_COORDINATOR=host:port` (where process
0 listens), `ATTENTION_JAX_NUM_PROCESSES` and `ATTENTION_JAX_PROCESS_ID` (from 0) do so explicitly;
`ATTENTION_JAX_DISTRIBUTED=auto` lets JAX ask SLURM, a TPU pod or Kubernetes; with none of these
there is one process. `ATTENTION_JAX_HEARTBEAT_SECONDS` is the silence after which a process counts
as gone (30).

Processes have to do the same things in the same order. What only the first one can do, such as
writing to the run directory, goes through `from_first` or `after_first`, and what may fail on some
of them through `agreed`: then all know the result, or all raise the same error. If a process dies,
the others exit with code 75, which means that the same command continues.
"""

import contextlib
import ctypes
import os
import pickle
import re
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, TypeVar

import jax
import numpy as np
from jax._src import distributed  # its client is the only barrier that gives up
from jax.experimental import multihost_utils

from attention_jax.errors import UserError

T = TypeVar("T")

# EX_TEMPFAIL: "try again later", what schedulers are told to requeue a job for.
RETRY = 75
_FAILURE, _MISTAKE, _INTERRUPTED = 1, 2, 130

_PREFIX = "ATTENTION_JAX_"
_PLACE = ("COORDINATOR", "NUM_PROCESSES", "PROCESS_ID")
_HEARTBEAT_SECONDS = 30
_LONGEST_EVALUATION_SECONDS = 3600  # that the others wait for the first process at the end
_LEAVING_SECONDS = 10
_LOST = "error: another process of this run is gone; the same command continues after the last save"
_BROKEN = re.compile(
    "closed by peer|reset by peer|Socket closed|Broken pipe|remote process exited|"
    "task.* (unhealthy|crashed|died)|heartbeat"
)


def initialize() -> None:
    """Connects to the other processes of the run, if the environment names any.

    To be called before anything touches a device. From then on the death of a process ends the
    others, within twice the heartbeat.

    Raises:
      UserError: If the environment makes no sense.
    """
    place = _place()
    if place is None:
        return
    # It would take SIGTERM for itself; `Preemption` notes it and lets all processes agree.
    jax.config.update("jax_enable_preemption_service", False)
    _leave_when_aborted()
    try:
        jax.distributed.initialize(
            **place,
            heartbeat_timeout_seconds=_number("HEARTBEAT_SECONDS", _HEARTBEAT_SECONDS, least=1),
            shutdown_timeout_seconds=_LONGEST_EVALUATION_SECONDS,
        )
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        if not place and isinstance(error, ValueError):
            raise UserError(
                f"{_PREFIX}DISTRIBUTED: expected auto under SLURM, on a TPU pod or another cluster "
                f"that JAX knows, found none ({reason})"
            ) from None
        print(f"error: the processes of the run did not meet: {reason}", file=sys.stderr)
        _exit(RETRY)


@contextlib.contextmanager
def joined() -> Iterator[None]:
    """Connects the processes for the block, and ends them together.

    An error that all processes raise is passed on. An error of this process alone ends it at once,
    with the exit code that goes with the error: the others are waiting in a collective that will
    never complete, and leave when the heartbeat tells them.
    """
    initialize()
    if not jax.distributed.is_initialized():
        yield
        return
    try:
        yield
    except BaseException as error:
        # Not this process's fault: the other one is gone already and cannot be waited for.
        if _is_broken_connection(error):
            print(_LOST, file=sys.stderr)
            _exit(RETRY)
        # While we wait, JAX may find that a process is gone, which then was the reason.
        is_runtime = isinstance(error, jax.errors.JaxRuntimeError)
        # All arrive at the barrier: the error was everybody's. Not all do: it was ours alone.
        if not _all_leave(2 * _heartbeat() if is_runtime else _LEAVING_SECONDS):
            _exit(_report(error))
        jax.distributed.shutdown()
        raise
    jax.distributed.shutdown()


def is_first() -> bool:
    """Returns whether this is the first process, the one that writes files and reports."""
    return jax.process_index() == 0


def gather(value: Any) -> list[Any]:
    """All-gather of Python objects: returns the values of all processes, in order.

    A collective, which all processes must call.

    Args:
      value: Anything that can be pickled.
    """
    if jax.process_count() == 1:
        return [value]
    mine = np.frombuffer(pickle.dumps(value), np.uint8)
    # Arrays of a collective have one shape: the sizes go first, then all are padded alike.
    sizes = multihost_utils.process_allgather(np.int32(mine.size))
    # A power of two: every new shape compiles a collective, so that there should be few.
    longest = 1 << int(sizes.max() - 1).bit_length()
    padded = np.zeros(longest, np.uint8)
    padded[: mine.size] = mine
    everyone = multihost_utils.process_allgather(padded)
    return [pickle.loads(row[:size].tobytes()) for row, size in zip(everyone, sizes, strict=True)]


@contextlib.contextmanager
def agreed() -> Iterator[None]:
    """Raises a UserError of one process on all of them.

    Nothing in the block may wait for another process.

    Raises:
      UserError: The process's own, or else that of the first process that has one.
    """
    own = None
    try:
        yield
    except UserError as error:
        own = error
    errors = [error for error in gather(own) if error is not None]
    if errors:
        raise own or errors[0]


def from_first(function: Callable[[], T]) -> T:
    """Broadcast: calls the function on the first process and returns its result on all.

    Raises:
      UserError: If the function does.
    """
    value = None
    with agreed():
        if is_first():
            value = function()
    return gather(value)[0]


def after_first(function: Callable[[], T], is_made: Callable[[], bool]) -> T:
    """Calls a function on every process, on the first one before the others.

    So the first process can make files that the others then read.

    Args:
      function: Called by every process; on the first one it makes what is missing.
      is_made: Whether nothing is missing, so that nobody has to wait; asked on the first process.

    Raises:
      UserError: If the function does on some process.
    """
    value = None
    everyone_at_once = from_first(is_made)
    # Two turns: the first process alone, then the others. `agreed` is where each waits.
    for turn in (True,) if everyone_at_once else (True, False):
        with agreed():
            if everyone_at_once or is_first() == turn:
                value = function()
    return value


def _place() -> dict[str, Any] | None:
    """Returns the arguments of `jax.distributed.initialize`, or None for a single process."""
    auto = os.environ.get(f"{_PREFIX}DISTRIBUTED", "")
    named = [name for name in _PLACE if os.environ.get(f"{_PREFIX}{name}")]
    if auto not in ("", "auto"):
        raise UserError(f"{_PREFIX}DISTRIBUTED: expected auto or nothing, found {auto!r}")
    if not named:
        return {} if auto else None
    if auto or len(named) < len(_PLACE):
        every = ", ".join(f"{_PREFIX}{name}" for name in _PLACE)
        also = f" beside {_PREFIX}DISTRIBUTED=auto" if auto else " only"
        raise UserError(
            f"{every}: expected all or none of them, found {_PREFIX}{named[0]}{also}"
        )
    coordinator = os.environ[f"{_PREFIX}COORDINATOR"]
    if not re.fullmatch(r".+:\d+", coordinator):
        raise UserError(f"{_PREFIX}COORDINATOR: expected host:port, found {coordinator!r}")
    count = _number("NUM_PROCESSES", least=1)
    process = _number("PROCESS_ID", least=0)
    if process >= count:
        raise UserError(
            f"{_PREFIX}PROCESS_ID: expected less than {_PREFIX}NUM_PROCESSES ({count}), "
            f"found {process}"
        )
    return {
        "coordinator_address": coordinator,
        "num_processes": count,
        "process_id": process,
        "cluster_detection_method": "deactivate",  # or JAX would ask SLURM, if that is there
    }


def _number(name: str, default: int | None = None, *, least: int) -> int:
    text = os.environ.get(f"{_PREFIX}{name}") or str(default)
    if not text.isdecimal() or int(text) < least:
        raise UserError(
            f"{_PREFIX}{name}: expected a whole number of at least {least}, found {text!r}"
        )
    return int(text)


def _heartbeat() -> int:
    return _number("HEARTBEAT_SECONDS", _HEARTBEAT_SECONDS, least=1)


def _all_leave(seconds: float) -> bool:
    """Waits at a barrier; returns whether all processes arrive within some seconds."""
    try:
        distributed.global_state.client.wait_at_barrier("leaving", int(1000 * seconds))
    except (RuntimeError, ValueError):
        return False
    return True


def _is_broken_connection(error: BaseException | None) -> bool:
    """Returns whether an error, or one of its causes, came of the death of another process."""
    while error is not None:
        if isinstance(error, Exception) and _BROKEN.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _report(error: BaseException) -> int:
    """Prints an error as the programs do, and returns the exit code."""
    if isinstance(error, UserError):
        print(f"error: {error}", file=sys.stderr)
        return _MISTAKE
    if isinstance(error, KeyboardInterrupt):
        return _INTERRUPTED
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else _FAILURE
    traceback.print_exception(error)
    return _FAILURE


def _exit(code: int) -> NoReturn:
    """Ends the process at once: handlers at exit would wait for other processes."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


@ctypes.CFUNCTYPE(None, ctypes.c_int)
def _aborted(number: int) -> None:
    os.write(2, f"{_LOST}\n".encode())
    os._exit(RETRY)


def _leave_when_aborted() -> None:
    """Sets the exit code for when JAX aborts the process because another one is gone.

    JAX aborts from a thread of its own, so the handler is set in C: a Python handler runs in the
    main thread, which would be too late.
    """
    ctypes.CDLL(None).signal(signal.SIGABRT, _aborted)
