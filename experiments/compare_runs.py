"""A table of one's own runs: translation, alignment, over- and under-translation."""

from collections.abc import Mapping
from pathlib import Path

from absl import flags

from attention_jax.errors import UserError
from attention_jax.inference.gold_links import GoldFiles
from attention_jax.inference.trained import load_run, task_of
from attention_jax.training.files import write_text
from experiments import attention_record, measure_tables
from experiments.sentence_measures import SentenceMeasure
from launch import cli

USAGE = """
Compares trained and evaluated runs on the same data, with significance against the first one.

usage: python -m experiments.compare_runs --runs=NAME=DIRECTORY,NAME=DIRECTORY [options]

  --runs     names and directories; runs of the same name are seeds of one system
  --split    test (default) or validation
  --output   file of the table, in Markdown; it is printed as well
  --alignment --alignment_base --alignment_source --alignment_target
             gold links, as for launch.evaluate: counted from 0 unless --alignment_base=1

for example:
  python -m experiments.compare_runs --runs=base=runs/base0,base=runs/base1,taught=runs/taught0
"""
_GOLD = ("alignment", "alignment_base", "alignment_source", "alignment_target")
_TABLES = (
    ("bleu", "chrf", "repeated", "excess", "missing"),
    ("aer", "saer", "match", "probability_mass", "match_before", "match_after"),
    ("unattended", "overattended", "deviation"),
)


def main() -> None:
    """Measures the runs and prints their table."""
    cli.use_compilation_cache()
    chosen = named_directories(cli.value("runs"))
    found: dict[str, list[dict[str, SentenceMeasure]]] = {}
    sources = None
    for name, directory in chosen:
        run = load_run(directory)
        split = task_of(run).split(cli.value("split"))
        if sources not in (None, split.sources):
            raise UserError(f"--runs: {directory}: expected the sources of {chosen[0][1]}, has not")
        sources = split.sources
        say = (lambda line: None) if found else cli.note  # once, not for every run
        gold = GoldFiles(*map(cli.value, _GOLD)).read([split], say)
        outputs = attention_record.run_outputs(run, split)
        counts = attention_record.measure(run, split, outputs, gold)
        found.setdefault(name, []).append(
            {measure: SentenceMeasure(measure, rows) for measure, rows in counts.items()}
        )
    text = "\n".join(comparison(found))
    if cli.value("output"):
        write_text(Path(cli.value("output")), text + "\n")
    print(text)


def named_directories(texts: list[str]) -> list[tuple[str, str]]:
    """Reads `NAME=DIRECTORY` pairs.

    Raises:
      UserError: If there is none, or one is something else.
    """
    pairs = [text.partition("=") for text in texts]
    wrong = [text for text, (name, _, path) in zip(texts, pairs, strict=True)
             if not name or not path]  # fmt: skip
    if wrong or not pairs:
        found = repr(wrong[0]) if wrong else "none"
        raise UserError(f"--runs: expected NAME=DIRECTORY, found {found}")
    return [(name, path) for name, _, path in pairs]


def comparison(found: Mapping[str, list[dict[str, SentenceMeasure]]]) -> list[str]:
    """Returns the lines of the tables of everything that was measured."""
    labels = {name: name for name in found}
    lines = []
    for measures in _TABLES:
        known = [name for name in measures if any(name in run for run in found[next(iter(found))])]
        if known:
            lines += [measure_tables.overview(found, labels, known), ""]
    return [*lines, measure_tables.LEGEND]


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, which are not those of programs that import this module."""
    flags.DEFINE_list("runs", [], "Names and directories.")
    flags.DEFINE_enum("split", "test", ["test", "validation"], "The split.")
    for name in ("output", "alignment", *_GOLD[2:]):
        flags.DEFINE_string(name, None, "See above.")
    flags.DEFINE_enum("alignment_base", "0", ["0", "1"], "Number of a first word.")
    return argv


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
