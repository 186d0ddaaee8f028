"""Writes the README's numbers from the record of a run; see `USAGE`."""

import re
from pathlib import Path
from typing import Any

from absl import flags

from attention_jax.commands import cli
from attention_jax.errors import UserError
from attention_jax.inference.evaluate import format_results
from attention_jax.inference.pictures import draw_translations
from attention_jax.inference.trained import TrainedRun, load_run
from attention_jax.inference.translate import Translator
from attention_jax.training.files import write_text
from attention_jax.training.provenance import short_commit
from attention_jax.training.run_directory import RunDirectory
from experiments.records import keep_record, read_record

USAGE = """
Writes the part of the README that reports the main example, from the record of its run, and draws
its picture.

usage: python -m experiments.readme [--run=runs/quickstart]

  --run  a finished run of configs/quickstart.py, whose record replaces the one in
         docs/results/quickstart first; the picture is of what it attends to
"""
RECORD = Path("docs/results/quickstart")
PICTURE = Path("docs/images/alignments.png")
WORDS = ("thoughtfully", "knightsbridge")
METRICS = {
    "per_no_stress": "phoneme error rate, without stress",
    "wer_no_stress": "word error rate, without stress",
    "per": "phoneme error rate, with stress",
    "wer": "word error rate, with stress",
}


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_string("run", None, "A finished run of the main example.")
    return argv


def main() -> None:
    """Keeps the record of a run, if one is named, and fills the README."""
    if flags.FLAGS.run:
        keep_record(Path(flags.FLAGS.run), RECORD)
        draw_words(load_run(flags.FLAGS.run), PICTURE)
    readme = Path("README.md")
    section = quickstart_section(read_record(RECORD), printed(RECORD))
    write_text(readme, replace_section(readme.read_text(), "quickstart", section))


def draw_words(run: TrainedRun, path: Path) -> None:
    """Draws which letters of some words a run reads each phoneme from."""
    draw_translations(run, list(Translator(run).translate(WORDS)), path)


def printed(record: Path) -> str:
    """Returns what the run printed at its end, as it is to be seen in a clone."""
    *lines, _ = format_results(RunDirectory(record, writes=False)).splitlines()
    return "\n".join([*lines, "Everything is in .../runs/quickstart"])


def quickstart_section(record: dict[str, Any], ending: str) -> str:
    """Returns the report of the main example as Markdown."""
    scores, made = record["results.json"]["test"], record["run.json"]
    versions, hardware = made["versions"], made["hardware"]
    rows = [f"| {label} | {scores[name]:.2f} % |" for name, label in METRICS.items()]
    return "\n".join(
        [
            "```text",
            ending,
            "```",
            "",
            "| test words of the CMU Pronouncing Dictionary | |",
            "|---|---:|",
            *rows,
            "",
            f"(`{made['command']}`, seed {made['seed']}, {scores['step']:,} steps, "
            f"{hardware['cpus']} CPU cores, jax {versions['jax']}, "
            f"commit {short_commit(made['commit'])}; record in [{RECORD}]({RECORD}))",
        ]
    )


def replace_section(text: str, name: str, section: str) -> str:
    """Replaces what stands between the marks `begin NAME` and `end NAME`."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if begin not in text or end not in text:
        raise UserError(f"README.md: expected the marks {begin} and {end}, found them not")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n{section}\n{end}", text)


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
