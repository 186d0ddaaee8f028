"""Run times: how many runs each experiment trains, and how long those took that have a record."""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from attention_jax.sweeps import archive, tables
from attention_jax.sweeps.records import minutes
from experiments import (
    allamanis2016,
    arthur2016,
    attention_vs_aligners,
    attention_vs_attribution,
    bahdanau2015_length,
    captions,
    copying,
    coverage_vs_supervised,
    documents,
    encoders_as_matrices,
    faster_searches,
    hard_vs_soft,
    luong2015_ablation,
    merity2016,
    pyramid,
    rationales,
    several_sources,
    small_text,
    text_and_picture,
    transformer_vs_rnn,
    vaswani2017_table3,
)

# The experiments that train a grid of runs, and what each compares.
GRIDS: Mapping[ModuleType, str] = {
    bahdanau2015_length: "attention with a fixed vector, by sentence length",
    luong2015_ablation: "scores, global and local attention, input feeding",
    vaswani2017_table3: "the Transformer with its sizes and parts varied",
    transformer_vs_rnn: "the Transformer with RNNsearch",
    encoders_as_matrices: "encoders under one decoder",
    coverage_vs_supervised: "coverage with supervised alignment, on two sizes of text; "
    "`aligner_error_rates` and `dropped_words` add to its page; `--full` asks for a GPU",
    attention_vs_aligners: "alignments of translation models, taught and untaught, with those of "
    "statistical aligners",
    attention_vs_attribution: "attention with attributions, by AER, of models without and with "
    "coverage or supervision",
    faster_searches: "searches in 8-bit integers and over shortlists with exact ones, by BLEU",
    several_sources: "translation from two languages at once with each alone, by decoders of "
    "three kinds",
    arthur2016: "translation lexicons: bias, interpolation, none; on two sizes of Multi30k and on "
    "Tatoeba",
    copying: "readouts that copy with unknown words replaced, left or cut, in code",
    hard_vs_soft: "soft, sampled, exact and monotonic hard attention on inflection and "
    "pronunciation",
    allamanis2016: "attention, convolutional attention and convolutional copy attention on names "
    "of functions",
    merity2016: "a language model with a pointer sentinel and without, on the Penn Treebank",
    pyramid: "recognition of spoken digits with a pyramid of frames and without",
    documents: "attention, averages and maxima for the labels of documents",
    rationales: "generators of rationales with one another and with attention",
    captions: "soft and hard attention on rendered formulas and on emoji",
    small_text: "one's own text of 1,000, 6,000 and 30,000 pairs, with settings by its size and by "
    "hand",
    text_and_picture: "names of emoji translated beside their pictures, beside others', and alone",
}
_HEADINGS = ("name", "what it compares", "runs", "minutes of one", "cores of one", "hours of all")


def run_times(results: Path) -> str:
    """Returns the table as Markdown.

    Args:
      results: The folder of the records, docs/results.
    """
    rows = []
    for experiment, what in GRIDS.items():
        grid = experiment.make_grid()
        number = len(grid.cells) * len(grid.seeds)
        facts = [each.facts for each in archive.load(results / grid.name / archive.FILE).outlines()]
        rows.append([f"`{experiment.NAME}`", what, str(number), *_taken(facts, number)])
    return tables.table(_HEADINGS, rows).replace("---:", "---", 1)  # the words, on the left too


def _taken(facts: Sequence[Mapping[str, Any]], number: int) -> Sequence[str]:
    """Formats the median of the known minutes, the cores, and the hours of so many runs."""
    found = [taken for taken in map(minutes, facts) if taken is not None]
    if not found:
        return [tables.NOTHING] * 3
    cores = sorted({each["hardware"]["cpus"] for each in facts})
    hours = statistics.mean(found) * number / 60
    return [f"{statistics.median(found):.1f}", " or ".join(map(str, cores)), f"{hours:.1f}"]
