"""Provenance of a run: command, code, data, versions, machine, times."""

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

_MODIFIED = "-modified"
# Measuring programs write there, one series after another: that changes no code.
_RESULTS = "docs/results"
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
            "cpus": usable_cpus(),
            "processor": processor(),
            "machine": platform.machine(),
            "system": platform.system(),
        },
    }


def usable_cpus() -> int | None:
    """Returns how many cores this process may run on, which may be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def processor() -> str:
    """Returns what the machine's processor calls itself."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def now() -> str:
    """Returns the time to the second, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def command_line() -> str:
    """Returns the command that started this process, as one could type it."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    script = pathlib.Path(sys.argv[0]).name
    if module is not None:
        program = ["python", "-m", module.name]
    else:
        program = [script] if script.startswith("attention-") else ["python", sys.argv[0]]
    return shlex.join([*program, *sys.argv[1:]])


def commit() -> str | None:
    """Returns the commit of this source tree, marked if its code differs from it, or None."""
    root = pathlib.Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    try:
        head = _git(root, "rev-parse", "HEAD")
        others = ("--", ".", f":(exclude){_RESULTS}")
        return head + _MODIFIED if _git(root, "status", "--porcelain", "-uno", *others) else head
    except (OSError, subprocess.SubprocessError):
        return None


def short_commit(recorded: str | None) -> str:
    """Returns a recorded commit as pages show it: its beginning, and whether code differed."""
    if recorded is None:
        return "unknown"
    name = recorded.removesuffix(_MODIFIED)
    return name[:10] + (", modified" if name != recorded else "")


def is_of_this_code(recorded: str | None) -> bool:
    """Tells whether something was made with the code of now; of modified code nobody knows."""
    return recorded == commit() and not (recorded or "").endswith(_MODIFIED)


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
