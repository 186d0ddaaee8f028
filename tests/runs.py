"""A trained run that tests of the programs share, made once for a session."""

import atexit
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = [sys.executable, "-m", "launch.train", "--config=configs/quickstart.py:smoke"]


@functools.cache
def smoke_run() -> tuple[Path, subprocess.CompletedProcess]:
    """Returns the directory of a run of the smoke config, and how the command ended.

    Do not change it; copy it.
    """
    base = Path(tempfile.mkdtemp(prefix="attention_jax_smoke_run_"))
    atexit.register(shutil.rmtree, base, ignore_errors=True)
    result = subprocess.run(
        [*COMMAND, f"--workdir={base / 'run'}"],
        capture_output=True, text=True, timeout=550, env=dict(os.environ),
    )  # fmt: skip
    return base / "run", result
