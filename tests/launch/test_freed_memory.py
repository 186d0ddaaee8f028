"""Programs keep what they freed, so that the same arrays cost the system nothing again."""

import os
import platform
import subprocess
import sys

import pytest

from launch.freed_memory import _OPTIONS

PAGES_OF_ARRAYS = 8 * 2**20 // os.sysconf("SC_PAGE_SIZE")
PROGRAM = """
import resource, sys
import numpy as np
from launch.freed_memory import keep_freed_memory

keep_freed_memory()

def work():
    arrays = [np.ones(2**18) for _ in range(4)]  # 2 MiB each

work()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    work()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(repository, environment):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=repository, env=environment,
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return int(result.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
@pytest.mark.parametrize("is_users", [False, True])
def test_arrays_of_a_size_that_was_freed_touch_no_new_memory(
    repository, python_environment, is_users
):
    environment = {name: text for name, text in python_environment.items() if name not in _OPTIONS}
    if is_users:  # who has large arrays mapped, each anew
        environment["MALLOC_MMAP_MAX_"] = environment["MALLOC_TRIM_THRESHOLD_"] = "65536"
    faults = _faults(repository, environment)
    assert (faults > 4 * PAGES_OF_ARRAYS) if is_users else (faults < PAGES_OF_ARRAYS / 4)
