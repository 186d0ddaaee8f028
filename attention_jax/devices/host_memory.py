"""Host memory: how much of it there is, and keeping what is freed for the next step to use.

On a CPU, XLA allocates its temporaries anew at every step. Large ones come from the kernel by
default, which hands out zeroed pages and takes them back each time; keeping them makes a training
step of the recurrent models 15 to 20 % faster.

That costs memory: XLA's blocks are aligned, for which glibc takes a little more than their size
and frees the rest, so that a freed block is too small for the next one of its size. A step comes to
hold several, and batches of many shapes more.
"""

import contextlib
import ctypes
import os
import pathlib
import sys
from collections.abc import Sequence

# Numbers of glibc's malloc.h.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_MAX, _M_ARENA_MAX = -1, -2, -4, -8
_NEVER = 2**31 - 1
_GROWTH_BYTES = 64 * 2**20
# Where Linux tells a container its limit, in version 2 and in version 1 of control groups.
_CONTAINER_LIMITS = (
    pathlib.Path("/sys/fs/cgroup/memory.max"),
    pathlib.Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def keep_freed_memory() -> bool:
    """Tells the C library's allocator not to return freed memory to the system.

    To be called before large arrays are made. It changes speed, and how much memory the process
    is seen to hold between steps, but no result. Settings of the user's own stay: a variable of
    the environment that glibc's allocator reads, such as `MALLOC_ARENA_MAX`.

    Returns:
      Whether the C library took the settings; only glibc knows them.
    """
    is_set = any(name.startswith("MALLOC_") for name in os.environ)
    if is_set or not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    settings = (
        (_M_MMAP_MAX, 0),  # no block gets a mapping of its own, which freeing would undo
        (_M_TRIM_THRESHOLD, _NEVER),  # the end of the heap is not given back either
        (_M_TOP_PAD, _GROWTH_BYTES),  # and it grows in large pieces, so seldom
        (_M_ARENA_MAX, 1),  # threads share one heap: none keeps a free block that another wants
    )
    return all([mallopt(name, value) == 1 for name, value in settings])


def memory_of_this_machine(limits: Sequence[pathlib.Path] = _CONTAINER_LIMITS) -> int:
    """Returns the bytes of main memory, or of what a container may take of it.

    Args:
      limits: Files in which Linux tells a container its limit: a number, or `max` for none.
    """
    known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in limits:
        with contextlib.suppress(OSError, ValueError):  # no such file, or `max`
            known.append(int(path.read_text()))
    return min(known)
