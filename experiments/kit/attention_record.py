"""Measures the attention and the translations of a trained run, sentence by sentence."""

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np
from absl import flags
from jaxtyping import Float

from attention_jax.analysis.gold_links import GoldFiles, GoldLinks, compare_with_gold
from attention_jax.commands import cli
from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Split
from attention_jax.data.lines import read_lines
from attention_jax.data.storage import data_root
from attention_jax.data.text.extended_vocabulary import extended
from attention_jax.data.text.words import word_pieces
from attention_jax.decoding.forced_decoding import forced_attention
from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.aer import LinkCounts, count_weights
from attention_jax.evaluation.attention_alignment import (
    SHIFTS,
    links_with_rows,
    match,
    probability_mass,
    shifted,
)
from attention_jax.evaluation.bleu import bleu_statistics
from attention_jax.evaluation.chrf import chrf_statistics
from attention_jax.evaluation.fertility import (
    DROPPED_BELOW,
    REPEATED_ABOVE,
    covering_weights,
    fertility,
)
from attention_jax.evaluation.over_under import (
    count_excess_and_missing,
    count_repeated,
    tokenized,
)
from attention_jax.evaluation.pharaoh import Link, parse_gold
from attention_jax.evaluation.unknown import readable, scorable
from attention_jax.runs.load import TrainedRun, load_run, task_of
from attention_jax.runs.run_directory import read_json
from attention_jax.spaced_words import spaced_words
from attention_jax.sweeps.grid import Grid, GridRun
from attention_jax.sweeps.kept_files import keep_lines
from attention_jax.training.loop import count_parameters
from experiments.kit import disagreement, measure_tables, sentence_measures

USAGE = """
Measures the attention and the translations of a trained run, sentence by sentence.

usage: python -m experiments.kit.attention_record --workdir=DIRECTORY

Writes sentence_measures.npz, from which tables with intervals are made, outputs.test.txt.gz, and
texts.test.txt.gz with sources and references. Attention is compared with gold links where
ATTENTION_JAX_DATA has them (multi30k/alignments, English to German).
"""
_GOLD = "multi30k/alignments/test_2016_flickr.{}-{}.tsv"
_WORDS = "multi30k/tok/test_2016_flickr.lc.norm.tok.{}.gz"
Counts = Float[np.ndarray, "N F"]


def main() -> None:
    """Measures the run."""
    cli.use_compilation_cache()
    record(load_run(cli.require("workdir")))


def record(run: TrainedRun) -> None:
    """Writes the measures of a run whose test split has been evaluated."""
    task = task_of(run)
    test, path = task.split("test"), run.directory.path
    outputs = run_outputs(run, test)
    gold = gold_links(test, run.config.data)
    sentence_measures.save(path / sentence_measures.FILE, measure(run, test, outputs, gold))
    keep_lines(path / disagreement.OUTPUTS, readable(outputs))
    # A source and its first reference in turn, as `disagreement.texts` reads them.
    pairs = zip(test.sources, test.references, strict=True)
    texts = (text for source, variants in pairs for text in (source, variants[0]))
    keep_lines(path / disagreement.TEXTS, texts)
    run.directory.add_to_run(
        num_parameters=count_parameters(run.params), num_train_pairs=len(task.split("train"))
    )


def run_outputs(run: TrainedRun, split: Split) -> list[str]:
    """Reads the outputs of a run for a split, in the form in which they are scored.

    Raises:
      RunDirectoryError: If the split has not been evaluated, or with other parameters.
    """
    path = run.directory.predictions(split.name)
    step = (read_json(run.directory.results) or {}).get(split.name, {}).get("step", run.step)
    if step != run.step:
        raise RunDirectoryError(
            f"{path}: expected outputs of step {run.step}, found those of step {step}; "
            "launch.evaluate writes them anew"
        )
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except OSError:
        raise RunDirectoryError(
            f"{path}: expected the outputs of {split.name}, found none; launch.evaluate writes them"
        ) from None
    return scorable(lines[: len(split)], split.references)


def measure(
    run: TrainedRun, split: Split, outputs: Sequence[str], gold: GoldLinks | None = None
) -> dict[str, Counts]:
    """Counts all measures of a run, sentence by sentence.

    Args:
      run: The run.
      split: Sources and references.
      outputs: The run's outputs for them.
      gold: Gold alignments that its attention is compared with.
    """
    counts = text_counts(outputs, split, run.config.data.bleu_tokenizer)
    if "alignment" in run.model.provides:
        counts |= coverage_counts(run, split, outputs)
        if gold is not None:
            counts |= gold_counts(run, split, gold)
    return counts


def text_counts(outputs: Sequence[str], split: Split, tokenize: str) -> dict[str, Counts]:
    """Counts BLEU, chrF and over- and under-translation; `tokenize` names BLEU's tokenizer."""
    references = split.references
    words = tokenized(outputs, tokenize)
    wanted = [tokenized(variants, tokenize) for variants in references]
    excess, missing = zip(*map(count_excess_and_missing, words, wanted), strict=True)
    counts = {
        "bleu": bleu_statistics(outputs, references, tokenize=tokenize),
        "chrf": chrf_statistics(outputs, references),
        "repeated": [count_repeated(each, order=2) for each in words],
        "excess": excess,
        "missing": missing,
    }
    return {name: np.array(rows, float) for name, rows in counts.items()}


def coverage_counts(run: TrainedRun, split: Split, outputs: Sequence[str]) -> dict[str, Counts]:
    """Coverage: counts source words by their fertility, the attention that an output gives them."""
    # The attention of forced decoding of the model's own outputs, not of the references.
    written = dataclasses.replace(split, targets=list(outputs))
    found = []
    for index, forced in enumerate(forced_attention(run, written)):
        words = (
            word_pieces(split.source_vocabulary, written.source_ids[index], split.sources[index]),
            word_pieces(
                extended(split.target_vocabulary, written.own_words[index]),
                written.target_ids[index],
            ),
        )
        found.append(fertility(covering_weights(run.linking_weights(forced.weights), *words)))
    return {
        "unattended": np.array([[np.sum(f < DROPPED_BELOW), len(f)] for f in found], float),
        "overattended": np.array([[np.sum(f > REPEATED_ABOVE), len(f)] for f in found], float),
        "deviation": np.array([[np.abs(1 - f).sum(), len(f)] for f in found], float),
    }


def gold_counts(run: TrainedRun, split: Split, gold: GoldLinks) -> dict[str, Counts]:
    """Counts the agreement of attention under teacher forcing with gold alignments (AER, ...)."""
    comparison = compare_with_gold(run, split, gold)
    attention, numbers = comparison.forward, sorted(gold.links)
    linking = [(attention[number].linking.words, gold.links[number]) for number in numbers]
    # Match and mass take the attention as it is, for they are measured with shifts of their own.
    pairs = [(attention[number].weights, gold.links[number]) for number in numbers]
    counts = {
        "aer": comparison.statistics()["aer"][0],
        "saer": [_row(count_weights(words.weights, links)) for words, links in linking],
        "probability_mass": [_mean_of(probability_mass, w, links.possible) for w, links in pairs],
    }
    for shift, suffix in zip(SHIFTS, ("_before", "", "_after"), strict=True):
        counts[f"match{suffix}"] = [
            _mean_of(match, shifted(w, shift), links_with_rows(links.possible, shift, len(w)))
            for w, links in pairs
        ]
    return {name: np.array(rows, float) for name, rows in counts.items()}


def gold_links(split: Split, data_config: DataConfig) -> GoldLinks | None:
    """Reads the gold alignments of the test split, those of the opposite direction turned round.

    Returns:
      The links; None if there are none for its data.
    """
    root = data_root()
    if root is None or data_config.name != "multi30k":
        return None
    languages = (data_config.source_language, data_config.target_language)
    words = [str(root / _WORDS.format(language)) for language in languages]
    links, turned = (root / _GOLD.format(*pair) for pair in (languages, languages[::-1]))
    if links.exists():
        return GoldFiles(str(links), "0", *words).read([split])
    if not turned.exists():
        return None
    known = parse_gold(read_lines(str(turned)), str(turned))
    known = {number: links.turned() for number, links in known.items()}
    return GoldLinks(known, *([spaced_words(line) for line in read_lines(path)] for path in words))


def by_cell(grid: Grid, runs: Sequence[GridRun]) -> measure_tables.Found:
    """Reads the measures of finished runs, by cell in the grid's order."""
    found = {
        cell: [sentence_measures.of_run(run) for run in runs if run.cell == cell]
        for cell in grid.cells
    }
    return {cell: seeds for cell, seeds in found.items() if seeds}


def _row(counts: LinkCounts) -> list[float]:
    return [counts.links, counts.sure, counts.sure_hits, counts.possible_hits]


def _mean_of(measure, weights: np.ndarray, links: Collection[Link]) -> list[float]:
    """Returns [value, 1] of a sentence, or [0, 0], which adds nothing, if it has no links."""
    return [measure(weights, links), 1.0] if links else [0.0, 0.0]


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, which are not those of programs that import this module."""
    flags.DEFINE_string("workdir", None, "The run's directory.")
    return argv


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
