"""How a run was made: command, code, data, versions, machine, times."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import shlex
import subprocess
import sys
from typing import Any

import jax

_PACKAGES = ("attention-jax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "grain",
             "numpy", "sentencepiece", "sacrebleu")


def describe_run(*, seed: int) -> dict[str, Any]:
    """Collects what is needed to make the run again, but for its config and its data's hash.

    Args:
      seed: Root of all randomness.
    """
    return {
        "command": command_line(),
        "commit": commit(),
        "seed": seed,
        "versions": {"python": platform.python_version(), **_versions()},
        "hardware": {
            "devices": [device.device_kind for device in jax.devices()],
            "processes": jax.process_count(),
            "cpus": os.cpu_count(),
            "machine": platform.machine(),
            "system": platform.system(),
        },
    }


def now() -> str:
    """Returns the time to the second, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def command_line() -> str:
    """Returns the command that started this process, as one could type it."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    program = ["-m", module.name] if module is not None else sys.argv[:1]
    return shlex.join(["python", *program, *sys.argv[1:]])


def commit() -> str | None:
    """Returns the commit of this source tree, marked if files differ from it, or None."""
    root = pathlib.Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head = _git(root, "rev-parse", "HEAD")
        return f"{head}-modified" if _git(root, "status", "--porcelain", "-uno") else head
    except (OSError, subprocess.SubprocessError):
        return None


def _git(root: pathlib.Path, *arguments: str) -> str:
    result = subprocess.run(
        ["git", "-C", str(root), *arguments],
        capture_output=True, text=True, timeout=10, check=True,
    )
    return result.stdout.strip()


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions
