"""Full disks and read-only directories: one line says so, and nothing is lost.

A scenario yields for each of its trials what was lost, or None.
"""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from experiments.benchmarks.reliability.bench import Bench, Skipped, content, difference

Trials = Iterator[str | None]

_MIB = 2**20


def full_disk(bench: Bench) -> Trials:
    """Fills the disk wholly, or up to half of a checkpoint; then there is room again."""
    with _small_disk(bench.folder / "disk") as disk:
        for free in (40 * 1024,) if bench.is_short else (0, 40 * 1024, 150 * 1024):
            run = disk / "run"
            shutil.rmtree(run, ignore_errors=True)
            shutil.copytree(bench.cut_off, run)
            ballast = disk / "ballast"
            _fill(ballast, free)
            ended = bench.train(run)
            problem = ended.unless(2)
            if not problem and not ended.is_one_line:
                problem = f"expected one line, found {ended.output[-300:]!r}"
            ballast.unlink()
            problem = problem or bench.train(run).unless(0)
            problem = problem or difference(run, bench.uninterrupted)
            yield problem and f"{free} bytes free: {problem}"


def read_only(bench: Bench) -> Trials:
    """A directory that may only be read, as a whole."""
    with _small_disk(bench.folder / "disk") as disk:
        run = Path(shutil.copytree(bench.cut_off, disk / "run"))
        before = content(run)
        with _remounted(disk):
            ended = bench.train(run)
        problem = ended.unless(2, "cannot be written")
        if not problem and not ended.is_one_line:
            problem = f"expected one line, found {ended.output[-300:]!r}"
        if not problem and content(run) != before:
            problem = "files have changed"
        yield problem


@contextlib.contextmanager
def _small_disk(path: Path) -> Iterator[Path]:
    """Mounts a disk of a few megabytes for the block.

    Raises:
      Skipped: If this is not allowed.
    """
    path.mkdir(exist_ok=True)
    _mount("mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(path))
    try:
        yield path
    finally:
        _mount("umount", str(path))


@contextlib.contextmanager
def _remounted(path: Path) -> Iterator[None]:
    _mount("mount", "-o", "remount,ro", str(path))
    try:
        yield
    finally:
        _mount("mount", "-o", "remount,rw", str(path))


def _mount(*command: str) -> None:
    if not shutil.which(command[0]):
        raise Skipped(f"there is no {command[0]}")
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise Skipped(f"mounting a small disk is not allowed here ({done.stderr.strip()[:100]})")


def _fill(path: Path, free: int) -> None:
    """Writes a file that leaves so many bytes of a disk free."""
    # In large pieces as long as they fit, then page by page until nothing fits, then cut back.
    with path.open("wb") as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(_MIB))
            file.flush()
    size = path.stat().st_size
    with path.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)) == 4096:
            size += 4096
    os.truncate(path, max(path.stat().st_size - free, 0))
