"""Main memory: how much a container may take, and keeping what is freed."""

import os
import platform
import subprocess
import sys

import pytest

from attention_jax.devices.host_memory import memory_of_this_machine

# Larger than any block that glibc would keep by itself.
PROGRAM = """
import ctypes, resource, sys
from attention_jax.devices.host_memory import keep_freed_memory
if sys.argv[1] != "leave":
    assert keep_freed_memory() == (sys.argv[1] == "keep")
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
size = 48 * 2**20
def touch():
    block = libc.malloc(ctypes.c_size_t(size))
    ctypes.memset(block, 1, size)
    libc.free(ctypes.c_void_p(block))
touch()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    touch()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def count_new_pages(mode: str, **variables: str) -> int:
    """Counts the pages that the kernel hands out while one block is taken and freed 20 times."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command, env = [sys.executable, "-c", PROGRAM, mode], {**others, **variables}
    return int(subprocess.run(command, capture_output=True, check=True, env=env).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_keep_freed_memory_takes_no_new_pages():
    assert count_new_pages("keep") < 100
    assert count_new_pages("leave") > 1000
    assert count_new_pages("set", MALLOC_MMAP_THRESHOLD_="33554432") > 1000  # as its user wants it


def test_a_container_has_what_it_may_take(tmp_path):
    limits = [tmp_path / name for name in ("none", "more", "less", "absent")]
    for path, text in zip(limits, ("max\n", "9223372036854771712\n", "1000000\n"), strict=False):
        path.write_text(text)
    assert memory_of_this_machine(limits) == 10**6
    assert memory_of_this_machine(limits[:2]) == memory_of_this_machine(())
