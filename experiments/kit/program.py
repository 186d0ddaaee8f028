"""The program of an experiment: command-line flags, running the grid, writing the report."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import UserError
from attention_jax.paths import expanded
from attention_jax.runs.run_directory import writing
from attention_jax.sweeps import archive
from attention_jax.sweeps.grid import Grid, GridRun
from attention_jax.sweeps.runner import run_all

OPTIONS = """
  --jobs=N          runs at a time, which share the cores (1)
  --only=CELL,CELL  run these cells only
  --list            show every run with its state and command, and stop
  --forget=CELL,CELL  first remove the records of these cells, which then run again
  --tables_only     make the tables of the records that there are
  --smoke           a tiny grid on made-up data, in seconds; records and tables go below --runs
  --runs=DIRECTORY  where runs train, and their logs (runs)
  --out=DIRECTORY   records and tables (docs/results)

A finished run has a record below --out and is not run again; one that was cut off continues.
SIGTERM or Ctrl-C make the runs save and stop. Exit codes: 0, 1 if a run failed, 2 after a mistake,
75 or 130 after SIGTERM or Ctrl-C.
"""


def define_flags(argv: list[str]) -> list[str]:
    """Defines the flags of a program that runs a grid."""
    flags.DEFINE_integer("jobs", 1, "Runs at a time.", lower_bound=1)
    flags.DEFINE_list("only", [], "Names of the cells to run; all if empty.")
    flags.DEFINE_list("forget", [], "Names of the cells whose records are removed.")
    flags.DEFINE_bool("list", False, "Show the runs and stop.")
    flags.DEFINE_bool("tables_only", False, "Run nothing.")
    flags.DEFINE_bool("smoke", False, "A tiny grid.")
    flags.DEFINE_string("runs", "runs", "Where runs train.")
    return define_grid_flags(argv)


def define_grid_flags(argv: list[str]) -> list[str]:
    """Defines the flags of a program that only reads the records of a grid.

    Flags are defined by a call and not on import, so that no program accepts flags it ignores.
    """
    flags.DEFINE_bool("full", False, "The grid at its full size, where there is one.")
    flags.DEFINE_string("out", None, "Where records and tables are written.")
    return argv


def run(
    usage: str,
    make_grid: Callable[[bool], Grid],
    write_report: Callable[[Grid, Sequence[GridRun], Path], Sequence[Path]],
    make_full_grid: Callable[[], Grid] | None = None,
    prepare: Callable[[], None] | None = None,
) -> None:
    """Runs the program of an experiment.

    Args:
      usage: Text of `--help`, before the options.
      make_grid: Returns the grid; its argument says whether it should be the tiny one.
      write_report: Takes the grid, its finished runs and a directory, writes tables and plots
        there and returns their paths.
      make_full_grid: Returns the grid of `--full`; None if the experiment has only one size.
      prepare: Makes what the runs read, such as a drawn text; not asked to where runs are tiny.
    """

    def main() -> int:
        smoke, runs_root = cli.value("smoke"), expanded(cli.value("runs"))
        grid = chosen_grid(make_grid, make_full_grid, full=cli.value("full"), smoke=smoke)
        usual = runs_root / "smoke_results" if smoke else "docs/results"
        out = expanded(cli.value("out") or usual)
        runs = grid.runs(runs_root, out)
        chosen = _chosen(runs, grid, "only")
        forgotten = _chosen(runs, grid, "forget") if cli.value("forget") else []
        for each in runs:
            each.resolved()  # a mistake in any cell is reported before the first hour of training
        if cli.value("list"):
            _show(chosen)
            return 0
        forget(forgotten)
        tables_only = cli.value("tables_only")
        if prepare is not None and not (smoke or tables_only):
            prepare()
        code = 0 if tables_only else run_all(chosen, cli.value("jobs"))
        finished = [each for each in runs if each.is_finished()]
        # Seeds of a cell say the same; each line is shown once.
        for line in dict.fromkeys(filter(None, map(_note, finished))):
            _say(line)
        if finished:
            with writing(out):
                paths = write_report(grid, finished, out)
            _say(f"Written: {', '.join(map(str, paths))}")
        elif tables_only:
            raise UserError(f"{runs[0].records}: expected a record, found none")
        return code

    cli.run(main, f"{usage.strip()}\n{OPTIONS}", define_flags)


def chosen_grid(
    make_grid: Callable[[bool], Grid],
    make_full_grid: Callable[[], Grid] | None,
    *,
    full: bool,
    smoke: bool = False,
) -> Grid:
    """Returns the grid that --full and --smoke ask for; the functions are those of `run`.

    Raises:
      UserError: If there is no such grid.
    """
    if not full:
        return make_grid(smoke)
    if make_full_grid is None:
        raise UserError("--full: expected an experiment with a full size, found one without")
    if smoke:
        raise UserError("--full: expected it without --smoke, found both")
    return make_full_grid()


def forget(runs: Sequence[GridRun]) -> None:
    """Removes the records of runs.

    Raises:
      RunDirectoryError: If they cannot be read or written.
    """
    keys = {(each.cell, each.seed) for each in runs if each.is_finished()}
    if keys:
        path = runs[0].records
        with writing(path):
            archive.update(
                path, lambda known: {key: one for key, one in known.items() if key not in keys}
            )


def _chosen(runs: Sequence[GridRun], grid: Grid, flag: str) -> list[GridRun]:
    """Returns the runs of the cells that a flag names; all runs if it names none."""
    names = cli.value(flag)
    for name in names:
        if name not in grid.cells:
            known = ", ".join(grid.cells)
            raise UserError(f"--{flag}: expected some of {known}, found {name!r}")
    return [each for each in runs if not names or each.cell in names]


def _note(run: GridRun) -> str:
    """Returns a notice if a cell's overrides have changed since its record was made, else ''."""
    changes = run.changes()
    if not changes:
        return ""
    return f"{run.cell}: recorded with {changes}; --forget={run.cell} would run it again"


def _show(runs: Sequence[GridRun]) -> None:
    for each in runs:
        print(f"{each.name}: {each.status()}")
        for arguments in each.arguments():
            print(f"    {shlex.join(['python', *arguments])}")


def _say(line: str) -> None:
    print(line, flush=True)
