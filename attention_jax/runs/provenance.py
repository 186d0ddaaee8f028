"""Provenance of a run: command, code, data, versions, machine, times."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import jax

from attention_jax.discovery import own_files

OWN_FILES = "own_files"
_MODIFIED = "-modified"
# In an archive, git has put the commit here (`export-subst` of .gitattributes).
_ARCHIVED = "$Format:%H$"
# Programs write their results here while they run, which does not make the code another.
_RESULTS = "docs/results"
_GIT_SECONDS = 60.0  # of a large clone on storage that is far away
_PACKAGES = ("attention-jax", "jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "grain",
             "numpy", "sentencepiece", "sacrebleu")


def describe_run(*, seed: int) -> dict[str, Any]:
    """Collects what is needed to repeat a run, apart from its config and its data's hash."""
    return {
        "command": command_line(),
        "commit": commit(),
        OWN_FILES: own_files(),
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


def changed_own_files(recorded: Mapping[str, Any]) -> list[str]:
    """Lists the files of the user's own that are not what they were when a run was made.

    Args:
      recorded: The facts of the run, which may know of no such files. One that is not there now is
        not listed: a part that is missing is refused where it is needed.
    """
    before = recorded.get(OWN_FILES)
    if not before:
        return []
    now = own_files()
    return sorted(name for name in before if name in now and now[name] != before[name])


def usable_cpus() -> int | None:
    """Returns how many cores this process may run on, perhaps fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def processor() -> str:
    """Returns the model name of the processor, and whether it has AVX-512.

    With other vector instructions sums are rounded otherwise, and one name may stand for both.
    """
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    known = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    name = known.get("model name") or platform.machine()
    return f"{name} (AVX-512)" if "avx512f" in known.get("flags", "").split() else name


def now() -> str:
    """Returns the time to the second, in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def command_line() -> str:
    """Returns the command that started this process, in a form that can be typed."""
    # Set for `python -m MODULE`, whose sys.argv[0] is the path of a file.
    module = getattr(sys.modules["__main__"], "__spec__", None)
    script = pathlib.Path(sys.argv[0]).name
    if module is not None:
        program = ["python", "-m", module.name]
    else:
        program = [script] if script.startswith("attention-") else ["python", sys.argv[0]]
    return shlex.join([*program, *sys.argv[1:]])


def commit() -> str | None:
    """Returns the git commit of this source tree, marked if files differ from it, or None.

    A copy without its history, as in a container's image, has what `ATTENTION_JAX_COMMIT` says, or
    what `git archive` wrote into it.
    """
    root = pathlib.Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        archived = None if _ARCHIVED.startswith("$") else _ARCHIVED
        return os.environ.get("ATTENTION_JAX_COMMIT") or archived
    try:
        head = _git(root, "rev-parse", "HEAD")
        others = ("--", ".", f":(exclude){_RESULTS}")
        # Untracked files (-uno) are no change: data and runs lie in the clone, too.
        return head + _MODIFIED if _git(root, "status", "--porcelain", "-uno", *others) else head
    except (OSError, subprocess.SubprocessError):
        return None


def short_commit(recorded: str | None) -> str:
    """Formats a recorded commit for a page: its first digits, and whether files were modified."""
    if recorded is None:
        return "unknown"
    name = recorded.removesuffix(_MODIFIED)
    return name[:10] + (", modified" if name != recorded else "")


def is_of_this_code(recorded: str | None) -> bool:
    """Whether a record was made with the present code; never if that was modified."""
    return recorded == commit() and not (recorded or "").endswith(_MODIFIED)


def _git(root: pathlib.Path, *arguments: str) -> str:
    result = subprocess.run(
        ["git", "-C", str(root), *arguments],
        capture_output=True, text=True, timeout=_GIT_SECONDS, check=True,
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
