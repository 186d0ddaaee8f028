"""GPUs of this host, counted without JAX: it would start those that the processes are to have."""

import os
import shutil
import subprocess


def visible_gpus() -> list[str]:
    """Lists the host's GPUs that programs may use, by the names that CUDA_VISIBLE_DEVICES has."""
    if os.environ.get("JAX_PLATFORMS", "").split(",")[0] not in ("", "cuda", "gpu"):
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip()]
    lister = shutil.which("nvidia-smi")
    listed = subprocess.run([lister, "-L"], capture_output=True, text=True) if lister else None
    lines = listed.stdout.splitlines() if listed else []
    return [str(number) for number in range(sum(line.startswith("GPU ") for line in lines))]


def shares_of_gpus(count: int) -> list[list[int]]:
    """GPU assignment: shares the host's GPUs out among processes; empty if there are none.

    Raises:
      ValueError: If they cannot be shared evenly.
    """
    gpus = len(visible_gpus())
    if not gpus:
        return []
    if gpus % count:
        raise ValueError(
            f"expected a number of processes that divides the {gpus} GPUs of this host, found "
            f"{count}; JAX_PLATFORMS=cpu trains without them"
        )
    size = gpus // count
    return [list(range(number * size, (number + 1) * size)) for number in range(count)]
