"""Damaged checkpoints: restored values are right, or one line says which older one is taken.

A scenario yields for each of its trials what was lost, or None.
"""

import contextlib
import functools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from attention_jax.errors import UserError
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.checkpoints.reading import Checkpoint
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.assembly import assemble
from experiments.benchmarks.reliability.bench import Bench, config_of, difference, saved_steps

Trials = Iterator[str | None]


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[len(data) // 2] ^= 16
    path.write_bytes(data)


def _delete(path: Path) -> None:
    path.unlink()


KINDS: dict[str, Callable[[Path], None]] = {
    "truncated": _truncate,
    "zeroed": _zero,
    "bit-flipped": _flip,
    "deleted": _delete,
}


def every_file(bench: Bench) -> Trials:
    """Damages every file of the newest checkpoint in every way, one at a time."""
    runs = [bench.cut_off]
    if not bench.is_short:
        runs.append(bench.uninterrupted_pair)
    for run in runs:
        like = _like(run)
        older, newest = saved_steps(run)[-2:]
        good = {step: _restore(run, like, step)[0] for step in (older, newest)}
        folder = run / "checkpoints" / str(newest)
        files = sorted(path.relative_to(run) for path in folder.rglob("*") if path.is_file())
        for number, file in enumerate(files):
            kinds = list(KINDS)
            # A short drill damages each file in one way, and goes through the ways in turn.
            for kind in [kinds[number % len(kinds)]] if bench.is_short else kinds:
                problem = _trial(bench.copy(run, "damaged"), like, good, file, KINDS[kind])
                yield problem and f"{file} {kind}: {problem}"


def leftovers(bench: Bench) -> Trials:
    """Leaves an empty step directory, and some that were being written when their process died."""
    places = (_empty_step, _temporary_step, _uncommitted_step)
    for chosen in (places,) if bench.is_short else ((place,) for place in places):
        run = bench.copy(bench.cut_off, "leftovers")
        newest = saved_steps(run)[-1]
        for place in chosen:
            place(run / "checkpoints", newest)
        problem = bench.train(run).unless(0, f"continuing after step {newest}")
        yield problem or difference(run, bench.uninterrupted)


def _trial(
    run: Path, like: Any, good: dict[int, Checkpoint], file: Path, damage: Callable[[Path], None]
) -> str | None:
    damage(run / file)
    newest = max(good)
    try:
        found, lines = _restore(run, like)
    except UserError as error:
        return f"nothing was restored: {error}"
    if found is None or found.step not in good:
        return f"step {found and found.step} was restored"
    if not _equal(found, good[found.step]):
        return f"other values were restored from step {found.step}"
    if found.step != newest:
        named = [line for line in lines if f"step {newest} " in line and file.name in line]
        if len(lines) != 1 or not named:
            return f"expected one line that names step and file, found {lines}"
    return None


def _restore(run: Path, like: Any, step: int | None = None) -> tuple[Checkpoint | None, list[str]]:
    lines: list[str] = []
    with Checkpointer(run / "checkpoints", read_only=True, report=lines.append) as checkpointer:
        return checkpointer.restore(like, step), lines


def _equal(found: Checkpoint, good: Checkpoint) -> bool:
    same = jax.tree.map(functools.partial(np.array_equal, equal_nan=True), found.state, good.state)
    plain = [(each.data, each.config, each.host) for each in (found, good)]
    return all(jax.tree.leaves(same)) and plain[0] == plain[1]


def _like(run: Path) -> Any:
    return assemble(config_of(run), RunDirectory(run)).like


def _empty_step(checkpoints: Path, newest: int) -> None:
    (checkpoints / str(newest + 19)).mkdir()


def _temporary_step(checkpoints: Path, newest: int) -> None:
    name = f"{newest + 20}.orbax-checkpoint-tmp-1"
    shutil.copytree(checkpoints / str(newest), checkpoints / name)
    with contextlib.suppress(FileNotFoundError):
        (checkpoints / name / "commit_success.txt").unlink()


def _uncommitted_step(checkpoints: Path, newest: int) -> None:
    copy = checkpoints / str(newest + 21)
    shutil.copytree(checkpoints / str(newest), copy)
    (copy / "commit_success.txt").unlink()
