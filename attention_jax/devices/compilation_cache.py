"""Compilation cache: compiled programs are kept between processes, in a folder of bounded size.

JAX looks a program up by its operations, the options of the compiler and its version. What it
compiles for a CPU is made for that very processor, so that processors have folders of their own: a
home directory may be that of several machines. JAX's own limit of the size is not used, since it
needs a lock, and an eviction that was cut off stops all later ones.
"""

import contextlib
import hashlib
import os
import platform
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import jax
from jax.experimental.compilation_cache import compilation_cache

from attention_jax.paths import user_cache

MAX_BYTES = 2**30
_KEPT = 0.8  # of these bytes, once they are passed, so that not every start has something to remove
_SHORTEST_SECONDS = 0.3  # of compilations that are kept
_PROBE_BYTES = 2**16
# Of /proc/cpuinfo, by x86 and by ARM.
_OF_A_PROCESSOR = ("model name", "flags", "Features", "CPU part", "CPU variant")


def keep_compiled(folder: str | os.PathLike, max_bytes: int = MAX_BYTES) -> str | None:
    """Keeps what this process compiles, and takes from there what others compiled before.

    Programs that have not been used for longest are removed first. Several processes may do so at
    once; what one of them misses, or what a killed one left incomplete, is compiled again.

    Args:
      folder: Where; it is made if there is none.
      max_bytes: What is left there when a process begins.

    Returns:
      Why nothing can be kept there, such as a full disk, or None if all is well.
    """
    place = Path(folder) / _processor()
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place) as probe:  # to try is the only sure test
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
    except OSError as error:
        return error.strerror or str(error)
    remove_longest_unused(Path(folder), max_bytes)
    jax.config.update("jax_compilation_cache_dir", str(place))
    # JAX decides once whether there is a cache, at the first compilation: in a notebook, long ago.
    compilation_cache.reset_cache()
    return None


def keep_by_default(say: Callable[[str], None]) -> None:
    """Keeps compiled programs among the user's caches, unless something else has been chosen.

    That is a folder that `JAX_COMPILATION_CACHE_DIR` or the program itself has given JAX, or an
    empty variable, with which there is no cache.

    Args:
      say: Takes a notice if nothing can be kept there.
    """
    if "JAX_COMPILATION_CACHE_DIR" in os.environ or jax.config.jax_compilation_cache_dir:
        return
    keep_what_takes_long()
    place = user_cache() / "xla"
    if reason := keep_compiled(place):
        say(
            f"notice: compiled programs are not kept: {place} cannot be written ({reason}); "
            "JAX_COMPILATION_CACHE_DIR names another folder"
        )


def keep_what_takes_long() -> None:
    """Settings of any compilation cache: what is quick to compile is not kept, nor are errors said.

    A disk that fills up meanwhile costs the time of compiling; what the run itself must write says
    more about it.
    """
    jax.config.update("jax_persistent_cache_min_compile_time_secs", _SHORTEST_SECONDS)
    warnings.filterwarnings(
        "ignore", message="Error (reading|writing) persistent compilation cache entry"
    )


def remove_longest_unused(folder: Path, max_bytes: int) -> None:
    """Least recently used: removes files below a folder if they have more than `max_bytes`."""
    used = []
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):  # another process has removed it
            stat = path.stat()
            if path.is_file():
                # Where a file system notes no time of reading, that of writing counts.
                used.append((max(stat.st_atime_ns, stat.st_mtime_ns), str(path), stat.st_size))
    size = sum(bytes_ for _, _, bytes_ in used)
    if size <= max_bytes:
        return
    for _, path, bytes_ in sorted(used):
        if size <= _KEPT * max_bytes:
            return
        with contextlib.suppress(OSError):
            os.unlink(path)
        size -= bytes_


def _processor() -> str:
    """Returns a name for the kind of this processor, the same on all machines that have it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = [platform.processor()]
    kind = {line for line in lines if line.startswith(_OF_A_PROCESSOR)} or set(lines)
    digest = hashlib.sha256("\n".join(sorted(kind)).encode()).hexdigest()
    return f"{platform.machine() or 'cpu'}-{digest[:12]}"
