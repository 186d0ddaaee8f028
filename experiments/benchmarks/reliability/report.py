"""What the drill has found: a table for the screen, and its record as JSON and Markdown."""

import dataclasses
import json
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax

from attention_jax.errors import RunDirectoryError
from attention_jax.runs.files import write_json, write_text
from attention_jax.runs.progress import format_seconds
from attention_jax.runs.provenance import command_line, commit, now, short_commit, usable_cpus

TITLE = "Fault drill"
_NOTE = """\
Every scenario is a number of trials, and a trial is lost if anything of it is: the parameters, the
validation losses or the outputs at the end are not those of a run that was left alone, to the last
bit; a file has changed that should not have; or what happened was not said as it should be. Between
different numbers of processes, validation losses may differ by 1e-6."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of a scenario.

    Attributes:
      name: The scenario.
      trials: How many there were.
      losses: What was lost, a line for each trial that was.
      seconds: How long it took.
      skipped: Why it was not tried, if it was not.
    """

    name: str
    trials: int
    losses: tuple[str, ...]
    seconds: float
    skipped: str = ""

    def row(self) -> tuple[str, str, str, str]:
        """Returns the cells of the table."""
        if self.skipped:
            return (self.name, "skipped", "", self.skipped)
        return (self.name, str(self.trials), str(len(self.losses)), format_seconds(self.seconds))


HEADINGS = ("scenario", "trials", "losses", "time")


def line(outcome: Outcome) -> str:
    """Returns the outcome of a scenario as lines for the screen."""
    name, trials, losses, time = outcome.row()
    return "\n".join([f"{name:<64} {trials:>7} {losses:>7}  {time}",
                      *(f"    lost: {loss}" for loss in outcome.losses)])  # fmt: skip


def record(outcomes: Sequence[Outcome], *, is_short: bool, seed: int) -> dict[str, Any]:
    """Returns outcomes with what is needed to find them again."""
    return {
        "command": command_line(),
        "commit": commit(),
        "finished": now(),
        "short": is_short,
        "seed": seed,
        "versions": {"python": platform.python_version(), "jax": jax.__version__},
        "hardware": {"cpus": usable_cpus(), "machine": platform.machine(),
                     "platform": jax.default_backend()},
        "trials": sum(outcome.trials for outcome in outcomes),
        "losses": sum(len(outcome.losses) for outcome in outcomes),
        "scenarios": [dataclasses.asdict(outcome) for outcome in outcomes],
    }  # fmt: skip


def page(outcomes: Sequence[Outcome], facts: dict[str, Any]) -> str:
    """Returns the record as Markdown."""
    hardware, versions = facts["hardware"], facts["versions"]
    rows = [HEADINGS, ("---", "---:", "---:", "---:"), *(outcome.row() for outcome in outcomes)]
    rows.append(("**together**", f"**{facts['trials']}**", f"**{facts['losses']}**", ""))
    lost = [f"- {o.name}: {loss}" for o in outcomes for loss in o.losses]
    return "\n".join([
        f"# {TITLE}", "", _NOTE, "",
        *(f"| {' | '.join(row)} |" for row in rows), "",
        *lost, *([""] if lost else []),
        f"`{facts['command']}` at {short_commit(facts['commit'])}, {facts['finished']}; "
        f"{hardware['cpus']} CPU cores ({hardware['machine']}), jax {versions['jax']}, "
        f"Python {versions['python']}.", "",
    ])  # fmt: skip


def save(folder: Path, outcomes: Sequence[Outcome], facts: dict[str, Any]) -> list[Path]:
    """Writes the record, and returns its files.

    Raises:
      RunDirectoryError: If they cannot be written.
    """
    paths = [folder / "drill.json", folder / "drill.md"]
    try:
        write_json(paths[0], json.loads(json.dumps(facts)))
        write_text(paths[1], page(outcomes, facts))
    except OSError as error:
        raise RunDirectoryError(f"{folder}: expected to write results, found {error}") from None
    return paths
