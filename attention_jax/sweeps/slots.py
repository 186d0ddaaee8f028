"""Slots of a machine: the cores and GPUs that each of several runs at a time has to itself."""

import dataclasses
import os
from collections.abc import Mapping, Sequence

from attention_jax.host.gpus import visible_gpus

_MEMORY = "XLA_PYTHON_CLIENT_MEM_FRACTION"
_SHARED_MEMORY = 0.9  # of a GPU, divided among the runs that share it


@dataclasses.dataclass(frozen=True)
class Slot:
    """What a run may use.

    Attributes:
      cores: CPU cores that its processes are pinned to; empty for all.
      environment: Environment variables of its processes beside our own.
    """

    cores: Sequence[int] = ()
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)


def slots(jobs: int) -> list[Slot]:
    """Shares cores and GPUs out among runs; a single one has them all.

    With fewer GPUs than runs, several share one, and its memory.

    Args:
      jobs: Runs at a time.
    """
    if jobs == 1:
        return [Slot()]
    shares = zip(_shares_of_cores(jobs), _shares_of_gpus(visible_gpus(), jobs), strict=True)
    return [Slot(cores, environment) for cores, environment in shares]


def _shares_of_cores(jobs: int) -> list[list[int]]:
    """Divides the cores among jobs: pinned processes do not slow one another down as much."""
    if not hasattr(os, "sched_setaffinity"):
        return [[] for _ in range(jobs)]
    cores = sorted(os.sched_getaffinity(0))
    size = max(len(cores) // jobs, 1)
    return [[cores[(job * size + i) % len(cores)] for i in range(size)] for job in range(jobs)]


def _shares_of_gpus(gpus: Sequence[str], jobs: int) -> list[dict[str, str]]:
    """Returns the variables that give each job its GPUs; none where there are none."""
    if not gpus:
        return [{} for _ in range(jobs)]
    size, together = max(len(gpus) // jobs, 1), -(-jobs // len(gpus))
    # A GPU's memory is taken whole by the first process, unless it is told to take less.
    memory = {} if together == 1 else {_MEMORY: f"{_SHARED_MEMORY / together:.3f}"}
    memory = {name: os.environ.get(name, text) for name, text in memory.items()}
    return [
        {
            "CUDA_VISIBLE_DEVICES": ",".join(
                gpus[(job * size + i) % len(gpus)] for i in range(size)
            ),
            **memory,
        }
        for job in range(jobs)
    ]
