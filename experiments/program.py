"""What the programs that reproduce a table or figure share: their flags and their course."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from absl import flags

from attention_jax.errors import UserError
from experiments.grid import Grid, Run
from experiments.runner import run_all
from launch import cli

_JOBS = flags.DEFINE_integer("jobs", 1, "Runs at a time.", lower_bound=1)
_ONLY = flags.DEFINE_list("only", [], "Names of the cells to run; all if empty.")
_LIST = flags.DEFINE_bool("list", False, "Show the runs and stop.")
_TABLES_ONLY = flags.DEFINE_bool("tables_only", False, "Run nothing.")
_SMOKE = flags.DEFINE_bool("smoke", False, "A tiny grid.")
_FULL = flags.DEFINE_bool("full", False, "The grid at its full size, where there is one.")
_RUNS = flags.DEFINE_string("runs", "runs", "Where runs train.")
_OUT = flags.DEFINE_string("out", None, "Where records and tables are written.")

OPTIONS = """
  --jobs=N          runs at a time, which share the cores (1)
  --only=CELL,CELL  run these cells only
  --list            show every run with its state and command, and stop
  --tables_only     make the tables of the records that there are
  --smoke           a tiny grid on made-up data, in seconds; records and tables go below --runs
  --runs=DIRECTORY  where runs train, and their logs (runs)
  --out=DIRECTORY   records and tables (docs/results)

A finished run has a record below --out and is not run again; one that was cut off continues.
SIGTERM or Ctrl-C make the runs save and stop. Exit codes: 0, 1 if a run failed, 2 after a mistake,
75 or 130 after SIGTERM or Ctrl-C.
"""


def run(
    usage: str,
    make_grid: Callable[[bool], Grid],
    write_report: Callable[[Grid, Sequence[Run], Path], Sequence[Path]],
    make_full_grid: Callable[[], Grid] | None = None,
) -> None:
    """Runs the program of an experiment.

    Args:
      usage: What `--help` prints, before the options.
      make_grid: Returns the grid; its argument says whether it should be the tiny one.
      write_report: Given the grid, its finished runs and a directory, writes tables and plots
        there and returns their paths.
      make_full_grid: Returns the grid of `--full`; None where the experiment has one size.
    """

    def main() -> int:
        grid = chosen_grid(make_grid, make_full_grid)
        runs_root = Path(_RUNS.value)
        out = Path(_OUT.value) if _OUT.value else _default_out(runs_root)
        runs = grid.runs(runs_root, out)
        chosen = _chosen(runs, grid)
        for each in runs:
            each.resolved()  # mistakes in any cell come before the first hour of training
        if _LIST.value:
            _show(chosen)
            return 0
        code = 0 if _TABLES_ONLY.value else run_all(chosen, _JOBS.value, _say)
        finished = [each for each in runs if each.is_finished()]
        if finished:
            paths = write_report(grid, finished, out)
            _say(f"Written: {', '.join(map(str, paths))}")
        elif _TABLES_ONLY.value:
            raise UserError(f"{out / grid.name / 'runs'}: expected a record, found none")
        return code

    cli.run(main, f"{usage.strip()}\n{OPTIONS}")


def chosen_grid(
    make_grid: Callable[[bool], Grid], make_full_grid: Callable[[], Grid] | None
) -> Grid:
    """Returns the grid that --smoke and --full ask for; its arguments are as those of `run`.

    Raises:
      UserError: If there is no such grid.
    """
    if not _FULL.value:
        return make_grid(_SMOKE.value)
    if make_full_grid is None:
        raise UserError("--full: expected an experiment with a full size, found one without")
    if _SMOKE.value:
        raise UserError("--full: expected it without --smoke, found both")
    return make_full_grid()


def _default_out(runs: Path) -> Path:
    return runs / "smoke_results" if _SMOKE.value else Path("docs/results")


def _chosen(runs: Sequence[Run], grid: Grid) -> list[Run]:
    for name in _ONLY.value:
        if name not in grid.cells:
            known = ", ".join(grid.cells)
            raise UserError(f"--only: expected some of {known}, found {name!r}")
    return [each for each in runs if not _ONLY.value or each.cell in _ONLY.value]


def _show(runs: Sequence[Run]) -> None:
    for each in runs:
        print(f"{each.name}: {each.status()}")
        for arguments in each.arguments():
            print(f"    {shlex.join(['python', *arguments])}")


def _say(line: str) -> None:
    print(line, flush=True)
