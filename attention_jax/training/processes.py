"""Several processes that train together; each finds the others by its environment.

`ATTENTION_JAX_COORDINATOR=host:port` with `ATTENTION_JAX_NUM_PROCESSES` and
`ATTENTION_JAX_PROCESS_ID`, or `ATTENTION_JAX_DISTRIBUTED=auto`, which leaves it to JAX to find
SLURM, a TPU pod or Kubernetes. With nothing set there is one process.
"""

import os

import jax

from attention_jax.errors import UserError

_HEARTBEAT_SECONDS = 10


def initialize() -> None:
    """Joins the other processes, if there are any; before anything touches a device.

    Raises:
      UserError: If the environment does not say how.
    """
    coordinator = os.environ.get("ATTENTION_JAX_COORDINATOR")
    automatic = os.environ.get("ATTENTION_JAX_DISTRIBUTED", "")
    if automatic not in ("", "auto"):
        raise UserError(f"ATTENTION_JAX_DISTRIBUTED: expected auto or nothing, found {automatic!r}")
    if coordinator:
        jax.distributed.initialize(
            coordinator,
            int(os.environ["ATTENTION_JAX_NUM_PROCESSES"]),
            int(os.environ["ATTENTION_JAX_PROCESS_ID"]),
            heartbeat_timeout_seconds=_HEARTBEAT_SECONDS,
        )
    elif automatic:
        jax.distributed.initialize(heartbeat_timeout_seconds=_HEARTBEAT_SECONDS)
