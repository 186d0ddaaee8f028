"""The hardware of a measurement, as records keep it and as pages name it."""

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from attention_jax.runs.provenance import processor, usable_cpus

_CPU = "cpu"  # what JAX calls any processor


def hardware() -> dict[str, Any]:
    """Describes the hardware of this machine, as plain JSON."""
    return {
        "cpu": processor(),
        "cores": usable_cpus() or 0,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def name_of_gpu() -> str:
    """Returns what kind of GPU the first of this machine is, or `unknown`."""
    lister = shutil.which("nvidia-smi")
    command = [lister, "--query-gpu=name", "--format=csv,noheader"]
    listed = subprocess.run(command, capture_output=True, text=True) if lister else None
    if listed is None or listed.returncode:  # a broken driver says so on standard output
        return "unknown"
    return next(iter(listed.stdout.splitlines()), "unknown").strip()


def named(hardware: Mapping[str, Any], device: str = _CPU) -> str:
    """Names a machine in a few words.

    Args:
      hardware: What `hardware` returned on that machine.
      device: The kind of JAX's device; an accelerator is named before the processor.
    """
    processor = f"{hardware['cpu']}, {hardware['cores']} cores"
    return processor if device == _CPU else f"{device} beside {processor}"
