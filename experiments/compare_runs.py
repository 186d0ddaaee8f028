"""Compares a user's own runs in a table: translation, alignment, over- and under-translation."""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import flags

from attention_jax.analysis.dropped_words import dropped_word_counts
from attention_jax.analysis.gold_links import GoldFiles, GoldLinks
from attention_jax.analysis.other_runs import OtherRun
from attention_jax.commands import cli
from attention_jax.data.examples import Split, Texts
from attention_jax.errors import UserError
from attention_jax.runs.files import write_text
from attention_jax.runs.run_directory import read_json
from attention_jax.sweeps import tables
from experiments.kit import attention_record, measure_tables
from experiments.kit.sentence_measures import SentenceMeasure

USAGE = """
Compares trained and evaluated runs on the same data, with significance against the first one.

usage: python -m experiments.compare_runs --runs=NAME=DIRECTORY,NAME=DIRECTORY [options]

  --runs     names and directories; runs of the same name are seeds of one system
  --split    test (default) or validation
  --output   file of the table, in Markdown; it is printed as well
  --dropped_words
             also count the source words that an aligner links to nothing in the outputs; it is
             trained on the first run's training text, which takes a minute or two
  --alignment --alignment_base --alignment_source --alignment_target
             gold links, as for launch.evaluate: counted from 0 unless --alignment_base=1

for example:
  python -m experiments.compare_runs --runs=base=runs/base0,base=runs/base1,taught=runs/taught0
"""
_GOLD = ("alignment", "alignment_base", "alignment_source", "alignment_target")
_TABLES = (
    ("bleu", "chrf", "repeated", "excess", "missing", "dropped"),
    ("aer", "saer", "match", "probability_mass", "match_before", "match_after"),
    ("unattended", "overattended", "deviation"),
)
_PLAIN = ("perplexity", "length_ratio", "attention_entropy")


@dataclasses.dataclass(frozen=True)
class Measured:
    """The measurements of a run.

    Attributes:
      place: Its directory, as given on the command line.
      outputs: Its outputs for the split.
      measures: Measures that have counts for every sentence, by name.
      results: The metrics of `results.json`.
      search: The search config of these outputs.
    """

    place: str
    outputs: Sequence[str]
    measures: dict[str, SentenceMeasure]
    results: Mapping[str, float]
    search: Mapping[str, Any]


Systems = Mapping[str, Sequence[Measured]]


def main() -> None:
    """Measures the runs and prints their tables."""
    cli.use_compilation_cache()
    output = cli.output_path("output")
    chosen = named_directories(cli.value("runs"))
    check_distinct(chosen)
    first = OtherRun.load("--runs", chosen[0][1])
    split = first.task.split(cli.value("split"))
    gold = GoldFiles(*map(cli.value, _GOLD)).read([split], cli.note)
    systems: dict[str, list[Measured]] = {}
    # A generator, so that the parameters of one run only are in memory at a time.
    others = (OtherRun.load("--runs", place) for _, place in chosen[1:])
    for (name, _), run in zip(chosen, itertools.chain([first], others), strict=True):
        systems.setdefault(name, []).append(measured(run, split, gold))
    if cli.value("dropped_words"):
        count_dropped(systems, first.task.split("train"), split.sources)
    text = "\n".join(comparison(systems))
    if output:
        write_text(output, text + "\n")
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


def check_distinct(chosen: Sequence[tuple[str, str]]) -> None:
    """Refuses a directory that is named twice as seeds of one system.

    Raises:
      UserError: If one is, also by two different paths.
    """
    known: dict[tuple[str, Path], str] = {}
    for name, place in chosen:
        other = known.setdefault((name, Path(place).resolve()), place)
        if other is not place:
            raise UserError(f"--runs: expected every seed of {name} once, found {place} twice")


def measured(other: OtherRun, split: Split, gold: GoldLinks | None) -> Measured:
    """Measures a run on its own split, whose text must be the same as that of the first run.

    Raises:
      UserError: If the text is another, or the run has no outputs of its present parameters.
    """
    run, its = other.run, other.same_split(split)
    outputs = attention_record.run_outputs(run, its)
    counts = attention_record.measure(run, its, outputs, gold)
    evaluations = (read_json(run.directory.run) or {}).get("evaluations", {})
    return Measured(
        other.place,
        outputs,
        {measure: SentenceMeasure(measure, rows) for measure, rows in counts.items()},
        (read_json(run.directory.results) or {}).get(its.name, {}),
        evaluations.get(its.name, {}).get("search", {}),
    )


def count_dropped(systems: Systems, train: Texts, sources: Sequence[str]) -> None:
    """Counts untranslated source words: adds the measure `dropped` to every run."""
    # All runs at once, for the aligner learns from the outputs of all of them.
    runs = [run for seeds in systems.values() for run in seeds]
    outputs = {str(number): run.outputs for number, run in enumerate(runs)}
    for run, rows in zip(runs, dropped_word_counts(train, sources, outputs).values(), strict=True):
        run.measures["dropped"] = SentenceMeasure("dropped", np.array(rows, float))


def comparison(systems: Systems) -> list[str]:
    """Returns the lines of the tables of all measures that any run has."""
    found = {name: [run.measures for run in seeds] for name, seeds in systems.items()}
    labels = {name: name for name in found}
    anywhere = {measure for runs in found.values() for run in runs for measure in run}
    lines = []
    for measures in _TABLES:
        known = [name for name in measures if name in anywhere]
        if known:
            lines += [measure_tables.overview(found, labels, known), ""]
    rows = [
        [name, *(tables.spread([run.results.get(metric) for run in seeds]) for metric in _PLAIN)]
        for name, seeds in systems.items()
    ]
    headings = ["system", *(metric.replace("_", " ") for metric in _PLAIN)]
    lines += [tables.table(headings, rows), "", measure_tables.LEGEND]
    return [*lines, *searched_otherwise(systems)]


def searched_otherwise(systems: Systems) -> Iterator[str]:
    """Yields a line for every run whose search config differs from that of the first run."""
    first, *others = (run for seeds in systems.values() for run in seeds)
    for run in others:
        here, there = run.search, first.search
        names = [name for name in {**there, **here} if here.get(name) != there.get(name)]
        if names:
            changes = ", ".join(f"{name} {here.get(name)} - {there.get(name)}" for name in names)
            yield f"\n{run.place} was searched otherwise than {first.place}: {changes}."


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, which are not those of programs that import this module."""
    flags.DEFINE_list("runs", [], "Names and directories.")
    flags.DEFINE_enum("split", "test", ["test", "validation"], "The split.")
    flags.DEFINE_bool("dropped_words", False, "Whether to count them.")
    for name in ("output", "alignment", *_GOLD[2:]):
        flags.DEFINE_string(name, None, "See above.")
    flags.DEFINE_enum("alignment_base", "0", ["0", "1"], "Number of a first word.")
    return argv


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
