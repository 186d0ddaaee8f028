"""What the command line of `launch.sweep` asks for: more runs, a list of them, or their page.

Nothing heavy is imported before it is needed, so that `--help` and mistakes are answered at once.
"""

import shlex
import sys
from collections.abc import Sequence
from typing import Any

from attention_jax.commands import cli
from attention_jax.errors import UserError, quoted
from attention_jax.runs.overrides import listed

_BASE = "config"  # the cell of a sweep in which seeds alone differ
_OF_RUNS = ("grid", "setting", "search", "trials", "evaluate")


def prepare(argv: Sequence[str]) -> list[str]:
    """Config overrides: defines those of the config, if there is one; see `cli`.

    Raises:
      UserError: If there is no such file, or an override does not fit it.
    """
    left, location = cli.take_out(argv, "config")
    return left if location is None else cli.prepare_experiment(argv)


def carried_out() -> int:
    """Sweep: runs what is asked for and not finished, and writes the page; returns the exit code.

    Raises:
      UserError: If something asked for makes no sense; nothing is written or run then.
    """
    workdir, asked = cli.require("workdir"), asked_plan()
    from attention_jax.sweeps import runner
    from attention_jax.sweeps.grid import GridRun
    from attention_jax.sweeps.measure import chosen_measure
    from attention_jax.sweeps.sweep import open_sweep

    sweep = open_sweep(workdir, asked)
    measure = chosen_measure(cli.value("metric"), sweep)
    number, code = cli.value("arguments"), 0
    if number is not None:
        print(*_train_arguments(_numbered(sweep, str(number), "arguments")), sep="\n")
        return 0
    chosen = _chosen(sweep)
    if cli.value("list"):
        _show(sweep, chosen)
        return 0
    if not cli.value("report_only"):
        line = _status_line()
        code = runner.run_all(chosen, cli.value("jobs"), line, GridRun.is_evaluated)
        if sweep.plan.search and len(chosen) == len(sweep.runs) and code in (0, runner.FAILED):
            from attention_jax.sweeps.trials import Trials

            trials, before = Trials(sweep, measure), len(sweep.runs)
            code = runner.run_queue(trials, before, cli.value("jobs"), line) or code
            sweep = open_sweep(workdir, None)
    return _reported(sweep, measure, code)


def asked_plan() -> Any:
    """Returns the plan that grids, settings and seeds make; None if there is no config.

    Raises:
      UserError: If they make none.
    """
    _, location = cli.take_out(sys.argv, "config")
    if location is None:
        for name in _OF_RUNS:
            if cli.value(name):
                raise UserError(f"--{name}: expected --config=FILE beside it, found none")
        return None
    from attention_jax.sweeps import axes
    from attention_jax.sweeps.sweep import Plan

    settings = axes.settings_axis(cli.value("setting"))
    varied = [*([settings] if settings else []), *map(axes.field_axis, cli.value("grid"))]
    cells = axes.crossed(varied) if varied else {_BASE: {}}
    overrides = [(path, "true" if text is None else text)
                 for path, text in listed(sys.argv, "config")]  # fmt: skip
    plan = Plan.asked(
        location, overrides, cells, cli.value("seeds"), _search(), evaluate=_evaluate()
    )  # fmt: skip
    if plan.evaluate:
        _check_evaluation(plan)
    if plan.search:
        from attention_jax.sweeps.trials import check_space

        check_space(plan)
    return plan


def _evaluate() -> list[str]:
    """Returns the options that --evaluate holds; UserError if no shell would take them."""
    text = cli.value("evaluate") or ""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UserError(f"--evaluate: expected options, found {quoted(text)} ({error})") from None


def _check_evaluation(plan: Any) -> None:
    """Checks the options of a plan's evaluation, before any run is trained."""
    from pathlib import Path

    from attention_jax.commands.evaluation_options import check_options
    from attention_jax.sweeps.sweep import Sweep

    configs = Sweep(Path(), plan).experiments.values()
    try:
        check_options(plan.evaluate, configs)
    except UserError as error:
        raise UserError(f"--evaluate: {error}") from None


def _search() -> dict[str, Any] | None:
    """Returns what --search and --trials ask for; None if they do not."""
    space, trials = cli.value("search"), cli.value("trials")
    if bool(space) != bool(trials):
        given, missing = ("search", "trials") if space else ("trials", "search")
        raise UserError(f"--{missing}: expected it beside --{given}, found none")
    return {"space": space, "trials": trials} if space else None


def _chosen(sweep: Any) -> list:
    """Returns the runs that --only and --run name; all if they name none."""
    cells = [cell for cell in (cli.value("only") or "").split(";") if cell]
    for cell in cells:
        if cell not in sweep.plan.cells:
            known = "; ".join(sweep.plan.cells)
            raise UserError(f"--only: expected some of {known}, found {quoted(cell)}")
    runs = [_numbered(sweep, text) for text in cli.value("run")] or sweep.runs
    return [run for run in runs if not cells or run.cell in cells]


def _numbered(sweep: Any, text: str, option: str = "run") -> Any:
    if not text.isdecimal() or int(text) >= len(sweep.runs):
        last = len(sweep.runs) - 1
        raise UserError(f"--{option}: expected a number from 0 to {last}, found {text!r}")
    return sweep.runs[int(text)]


def _train_arguments(run: Any) -> list[str]:
    """Returns what `launch.train` takes for a run."""
    train, *_ = run.arguments()
    return [argument for argument in train if argument.startswith("--")]


def _show(sweep: Any, runs: Sequence) -> None:
    numbers = {run.name: number for number, run in enumerate(sweep.runs)}
    for run in runs:
        again = run.is_finished() and not run.is_evaluated()
        status = f"{run.status()}{', to be evaluated again' if again else ''}"
        print(f"{numbers[run.name]:>4}  {run.name}: {status}")
        for arguments in run.arguments():
            print(f"      {shlex.join(['python', *arguments])}")


def _status_line() -> Any:
    from attention_jax.runs.progress import StatusLine

    return StatusLine(sys.stderr, every_seconds=60.0)


def _reported(sweep: Any, measure: Any, code: int) -> int:
    """Writes the page of what is finished, and prints its table."""
    from attention_jax.runs.run_directory import writing
    from attention_jax.sweeps.page import write_page

    if any(run.is_finished() for run in sweep.runs):
        with writing(sweep.directory):
            print(*write_page(sweep, measure), sep="\n")
    elif cli.value("report_only"):
        raise UserError(f"{sweep.directory}: expected a finished run, found none")
    return code
