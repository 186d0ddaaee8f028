"""Runs programs of `launch`, and of others, one after another without starting Python for each.

A server process imports what they need once and forks for every command; a command sees a fresh
copy of the process, as if it had been started by a shell.
"""

import dataclasses
import gc
import importlib
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

_MODULE = "tests.programs"
# What commands import in time, which each of the copies would do again.
_IMPORTED = (
    "attention_jax.analysis.evaluate", "attention_jax.analysis.pictures",
    "attention_jax.analysis.viewing", "attention_jax.data.preparation",
    "attention_jax.experiment", "attention_jax.models.encoder_decoder", "fontTools.subset",
    "matplotlib.backends.backend_agg", "matplotlib.backends.backend_pdf", "orbax.checkpoint",
    "tensorflow_datasets",
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The single line of an answer to a mistake."""
        assert self.code == 2, (self.code, self.out, self.err)
        assert self.out == "", self.out
        assert self.err.count("\n") == 1 and self.err.startswith("error: "), self.err
        return self.err.removeprefix("error: ").rstrip("\n")


class Commands:
    """The server's client."""

    def __init__(self):
        self._server = subprocess.Popen(
            [sys.executable, "-m", _MODULE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __call__(self, program: str, *arguments: str, stdin: bytes = b"") -> Result:
        """Runs `python -m launch.PROGRAM ARGUMENTS` in the root of the repository.

        A program of `experiments` is given with it, such as `experiments.compare_runs`.
        """
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "stdin").write_bytes(stdin)
            order = {"program": program, "arguments": arguments, "folder": folder}
            self._server.stdin.write(json.dumps(order).encode() + b"\n")
            self._server.stdin.flush()
            code = int(self._server.stdout.readline())
            out, err = (Path(folder, name).read_bytes() for name in ("stdout", "stderr"))
            return Result(code, out.decode(), err.decode())

    def close(self) -> None:
        """Ends the server."""
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait(30)


def _serve() -> None:
    for name in _IMPORTED:
        importlib.import_module(name)
    # A thread of a library would not live on in the copies.
    assert threading.active_count() == 1, threading.enumerate()
    gc.freeze()  # else each copy would look through all that was imported, and so copy it
    gc.set_threshold(10_000, 20, 10)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            _run(**json.loads(line))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _run(program: str, arguments: list[str], folder: str) -> None:
    for number, (name, flags) in enumerate(
        (("stdin", os.O_RDONLY), *((n, os.O_WRONLY | os.O_CREAT) for n in ("stdout", "stderr")))
    ):
        os.dup2(os.open(f"{folder}/{name}", flags), number)
    sys.stdin = io.TextIOWrapper(io.FileIO(0))
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w"), write_through=True, encoding="utf-8")
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w"), write_through=True, encoding="utf-8")
    sys.argv = [program, *arguments]
    code = 1
    try:
        module = program if program.startswith("experiments.") else f"launch.{program}"
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 0 if exit_.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
