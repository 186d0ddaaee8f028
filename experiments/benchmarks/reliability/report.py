"""Report of the fault drill: a table for the screen, and its record as JSON and Markdown."""

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
from experiments.kit import templates


@dataclasses.dataclass(frozen=True)
class Outcome:
    """The outcome of a scenario.

    Attributes:
      name: The scenario's title.
      trials: Number of trials.
      losses: A line for each trial in which something was lost.
      seconds: Duration of all trials.
      skipped: Why the scenario was not tried; empty if it was.
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
    text = templates.fill(
        "fault_drill", table="\n".join(f"| {' | '.join(row)} |" for row in rows),
        lost="\n".join(f"- {o.name}: {loss}" for o in outcomes for loss in o.losses),
        command=facts["command"], commit=short_commit(facts["commit"]),
        finished=facts["finished"], cpus=hardware["cpus"], machine=hardware["machine"],
        jax=versions["jax"], python=versions["python"],
    )  # fmt: skip
    return text + "\n"


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
