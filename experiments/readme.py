"""The README's numbers: writes its generated sections from records; see `USAGE`."""

from pathlib import Path
from typing import Any

from absl import flags

from attention_jax.analysis.pictures import draw_translations
from attention_jax.commands import cli
from attention_jax.data.tasks.pronounce import TASK
from attention_jax.decoding.translate import Translator
from attention_jax.runs.load import TrainedRun, load_run
from attention_jax.runs.provenance import short_commit
from attention_jax.runs.results import format_results
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.sweeps.records import keep_record, read_record
from experiments.kit.sections import write_sections
from experiments.main_results import main_results

USAGE = """
Writes the parts of the README that report the main example, from the record of its run, and the
main results, from those of docs/results; and draws the main example's picture.

usage: python -m experiments.readme [--run=runs/quickstart]

  --run  a finished run of configs/quickstart.py, whose record replaces the one in
         docs/results/quickstart first; the picture is of what it attends to
"""
README = Path("README.md")
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
    """Keeps the record of a run, if one is named, and rewrites the README's sections."""
    if flags.FLAGS.run:
        keep_record(Path(flags.FLAGS.run), RECORD)
        draw_words(load_run(flags.FLAGS.run), PICTURE)
    write_sections(README, sections())


def sections() -> dict[str, str]:
    """Returns the generated parts of the README by their names."""
    quickstart = quickstart_section(read_record(RECORD), printed(RECORD))
    return {"quickstart": quickstart, "results": main_results()}


def draw_words(run: TrainedRun, path: Path) -> None:
    """Draws attention heat maps: from which letters of a word each phoneme is read."""
    draw_translations(run, list(Translator(run).translate(WORDS)), path)


def printed(record: Path) -> str:
    """Returns what the run printed at its end, with the path that a clone would show."""
    # The last line names the record's own folder; a reader's run is elsewhere.
    *lines, _ = format_results(RunDirectory(record, writes=False), TASK.shown).splitlines()
    place = ".../runs/quickstart"
    return "\n".join([*lines, f"Everything is in {place}; open {place}/viewer.test.html"])


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


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
