"""The README's numbers, and times in docs/results.md: written from records; see `USAGE`."""

import datetime
import platform
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from absl import flags

from attention_jax.analysis.pictures import draw_translations
from attention_jax.commands import cli
from attention_jax.data.tasks.pronounce import TASK
from attention_jax.decoding.translate import Translator
from attention_jax.errors import UserError
from attention_jax.json_files import read_json
from attention_jax.paths import expanded
from attention_jax.runs.files import write_json
from attention_jax.runs.load import TrainedRun, load_run
from attention_jax.runs.provenance import commit, short_commit, usable_cpus
from attention_jax.runs.results import format_results
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.sweeps.records import keep_record, read_record
from experiments.kit.sections import write_sections
from experiments.main_results import main_results
from experiments.run_times import minutes, run_times

USAGE = """
Writes the parts of the README that report the main example, from the record of its run, the tests,
and the main results, from those of docs/results; the table of docs/results.md that says how long
experiments take; and draws the main example's picture.

usage: python -m experiments.readme [--run=runs/quickstart] [--tests=tests.xml]

  --run    a finished run of configs/quickstart.py, whose record replaces the one in
           docs/results/quickstart first; the picture is of what it attends to
  --tests  what `make test PYTEST_FLAGS=--junitxml=tests.xml` has written, with this Python and the
           present commit; its counts replace those in docs/results/tests.json first
"""
README = Path("README.md")
RESULTS = Path("docs/results.md")
RECORD = Path("docs/results/quickstart")
TESTS = Path("docs/results/tests.json")
PICTURE = Path("docs/images/alignments.png")
WORDS = ("thoughtfully", "knightsbridge")
METRICS = {
    "per_no_stress": "phoneme error rate, without stress",
    "wer_no_stress": "word error rate, without stress",
    "per": "phoneme error rate, with stress",
    "wer": "word error rate, with stress",
}
_TESTS = {"passed": int, "skipped": int, "seconds": float, "cpus": int, "python": str,
          "commit": (str, None)}  # fmt: skip


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, when it runs and not when it is imported."""
    flags.DEFINE_string("run", None, "A finished run of the main example.")
    flags.DEFINE_string("tests", None, "What pytest says of all tests.")
    return argv


def main() -> None:
    """Keeps the records of what is named, and rewrites the generated sections."""
    if flags.FLAGS.run:
        keep_record(expanded(flags.FLAGS.run), RECORD)
        draw_words(load_run(flags.FLAGS.run), PICTURE)
    if flags.FLAGS.tests:
        keep_tests(expanded(flags.FLAGS.tests), TESTS)
    for page, found in sections().items():
        write_sections(page, found)


def sections() -> dict[Path, dict[str, str]]:
    """Returns the generated parts of each page by their names."""
    quickstart = quickstart_section(read_record(RECORD), printed(RECORD))
    tests = tests_section(read_json(TESTS, _TESTS))
    return {
        README: {"quickstart": quickstart, "tests": tests, "results": main_results()},
        RESULTS: {"times": run_times(TESTS.parent)},
    }


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
            f"{minutes(made):.1f} minutes, {hardware['cpus']} CPU cores, jax {versions['jax']}, "
            f"commit {short_commit(made['commit'])}; record in [{RECORD}]({RECORD}))",
        ]
    )


def keep_tests(report: Path, record: Path) -> None:
    """Keeps the counts of pytest's report on all tests, with the Python and the commit.

    Raises:
      UserError: If it is no such report, or a test has failed.
    """
    try:
        counts = ElementTree.parse(report).getroot().find("testsuite").attrib
        names = ("tests", "skipped", "failures", "errors")
        number, skipped, *bad = (int(counts[name]) for name in names)
        seconds = float(counts["time"])
    except (OSError, ElementTree.ParseError, AttributeError, KeyError, ValueError) as error:
        expected = "a report of pytest's, as --junitxml writes it"
        raise UserError(f"--tests: expected {expected}, found {report} ({error})") from None
    if any(bad):
        raise UserError(f"--tests: expected no failures, found {sum(bad)} in {report}")
    facts = {"cpus": usable_cpus(), "python": platform.python_version(), "commit": commit()}
    passed = number - skipped
    write_json(record, {"passed": passed, "skipped": skipped, "seconds": seconds, **facts})


def tests_section(found: dict[str, Any]) -> str:
    """Returns how the tests ended, as pytest says it."""
    seconds = found["seconds"]
    clock = datetime.timedelta(seconds=int(seconds))
    return "\n".join(
        [
            "```text",
            f"{found['passed']} passed, {found['skipped']} skipped in {seconds:.2f}s ({clock})",
            "```",
            "",
            f"({found['cpus']} CPU cores, Python {found['python']}, commit "
            f"{short_commit(found['commit'])}; record in [{TESTS}]({TESTS}))",
        ]
    )


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
