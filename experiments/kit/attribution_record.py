"""Measures the attributions of a trained run beside its attention, sentence by sentence."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np
from absl import flags

from attention_jax.analysis.attributed_words import attribute_words
from attention_jax.analysis.attribution import ATTRIBUTIONS, check_attributable
from attention_jax.analysis.gold_links import GoldComparison, GoldLinks, compare_with_gold
from attention_jax.commands import cli
from attention_jax.data.examples import Split
from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.pharaoh import MarkedLinks, marked_links
from attention_jax.evaluation.word_weights import WordWeights
from attention_jax.runs.load import TrainedRun, load_run, task_of
from attention_jax.sweeps.grid import GridRun
from attention_jax.training.loop import count_parameters
from experiments.kit import sentence_measures
from experiments.kit.attention_record import Counts, gold_links
from experiments.kit.sentence_measures import SentenceMeasure

USAGE = """
Measures the attributions of a trained run beside its attention, on the test sentences with gold
links (multi30k/alignments of ATTENTION_JAX_DATA), or on the first hundred where there are none.

usage: python -m experiments.kit.attribution_record --workdir=DIRECTORY

Writes attribution_measures.npz: of attention and of each attribution, by the name NAME.MEASURE, the
AER against gold links, and for how many words it names the source word that attention names.
"""
FILE = "attribution_measures.npz"
ATTENTION = "attention"
AER, AGREEMENT = "aer", "agreement"
_WITHOUT_LINKS = 100  # sentences


def main() -> None:
    """Measures the run."""
    cli.use_compilation_cache()
    record(load_run(cli.require("workdir")))


def record(run: TrainedRun) -> None:
    """Writes the measures of a run."""
    task = task_of(run)
    test = task.split("test")
    counts = measure(run, test, gold_links(test, run.config.data))
    sentence_measures.save(run.directory.path / FILE, counts)
    run.directory.add_to_run(
        num_parameters=count_parameters(run.params), num_train_pairs=len(task.split("train"))
    )


def measure(run: TrainedRun, split: Split, gold: GoldLinks | None = None) -> dict[str, Counts]:
    """Counts AER and agreement of all attribution methods, sentence by sentence.

    Args:
      run: The run.
      split: Sources and references.
      gold: Gold alignments; without, there is no AER.
    """
    methods = ATTRIBUTIONS.names()
    check_attributable("attribution", run, split, methods)
    if gold is None:
        split = split.select(range(min(len(split), _WITHOUT_LINKS)))
    compared = compare_with_gold(run, split, gold or _nothing_linked(split))
    attributed = attribute_words(run, split, compared, methods).words
    words = {ATTENTION: _attended(compared), **attributed}
    counts = {}
    for name, of_pairs in words.items():
        if gold is not None:
            golds = [compared.links[number] for number in sorted(compared.links)]
            counts[f"{name}.{AER}"] = _errors(of_pairs, golds)
        if name != ATTENTION:
            pairs = zip(words[ATTENTION], of_pairs, strict=True)
            counts[f"{name}.{AGREEMENT}"] = np.array([agreement(*pair) for pair in pairs], float)
    return counts


def agreement(one: WordWeights, other: WordWeights) -> tuple[int, int]:
    """Counts the target words that both link to a source word, and those linked to a common one.

    Returns:
      (words of the latter kind, words of the former).
    """
    mine, others = (_by_target(each) for each in (one, other))
    both = mine.keys() & others.keys()
    return sum(bool(mine[word] & others[word]) for word in both), len(both)


def of_run(run: GridRun) -> dict[str, dict[str, SentenceMeasure]]:
    """Reads the measures of a finished run: of attention and each method, by the measure's name.

    Raises:
      RunDirectoryError: If its record has none.
    """
    return sentence_measures.by_name(run.arrays(FILE))


def _nothing_linked(split: Split) -> GoldLinks:
    return GoldLinks({number: marked_links(()) for number in range(len(split))})


def _attended(compared: GoldComparison) -> list[WordWeights]:
    return [compared.forward[number].linking.words for number in sorted(compared.links)]


def _errors(words: Sequence[WordWeights], golds: Sequence[MarkedLinks]) -> Counts:
    pairs = zip(words, golds, strict=True)
    counts = (count_links([each.links()], [links]) for each, links in pairs)
    return np.array([dataclasses.astuple(each) for each in counts], float)


def _by_target(words: WordWeights) -> Mapping[int, set[int]]:
    found: dict[int, set[int]] = {}
    for source, target in words.links():
        found.setdefault(target, set()).add(source)
    return found


def define_flags(argv: list[str]) -> list[str]:
    """Defines the program's flags, which are not those of programs that import this module."""
    flags.DEFINE_string("workdir", None, "The run's directory.")
    return argv


if __name__ == "__main__":
    cli.run(main, USAGE, define_flags)
