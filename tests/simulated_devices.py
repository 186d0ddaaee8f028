"""Calls a function in a process of its own, on a CPU that counts as several devices."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]


# What `conftest.py` sets, so that tests compile sooner than users do.
_SHORTCUTS = ("JAX_DISABLE_MOST_OPTIMIZATIONS", "XLA_FLAGS")


def call_on_devices(number: int, function: str, *arguments: Any, is_optimized: bool = False) -> Any:
    """Returns what `module.function` returns on so many devices; all of it as JSON can hold it.

    With `is_optimized`, programs are compiled as they are for users.
    """
    module, _, name = function.rpartition(".")
    program = (
        f"import json; from {module} import {name}; "
        f"found = {name}(*json.loads({json.dumps(json.dumps(arguments))})); "
        "print('\\n' + json.dumps(found))"
    )
    left_out = _SHORTCUTS if is_optimized else ()
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    flags = f"{environment.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={number}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**environment, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"},
        cwd=_ROOT,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])
