"""A trained run that tests of the programs share, made once for a session."""

import fcntl
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "launch.train", "--config=configs/quickstart.py:smoke"]


@functools.cache
def smoke_run() -> tuple[Path, subprocess.CompletedProcess]:
    """Returns the directory of a run of the smoke config, and how the command ended.

    Parallel workers share it: do not change it; copy it.
    """
    base = Path(os.environ["ATTENTION_JAX_TEST_CACHE"]) / "smoke_run"
    base.mkdir(exist_ok=True)
    workdir, ended = base / "run", base / "ended.json"
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ended.exists():
            result = subprocess.run(
                [*COMMAND, f"--workdir={workdir}"], capture_output=True, text=True, timeout=1500
            )
            ended.write_text(json.dumps(vars(result)))
    return workdir, subprocess.CompletedProcess(**json.loads(ended.read_text()))
