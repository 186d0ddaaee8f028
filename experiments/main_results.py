"""Main results: the README's table, a few numbers of each page, from the same records."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType

from attention_jax.evaluation import seeds
from attention_jax.sweeps import archive, tables
from attention_jax.sweeps.grid import GridRun
from experiments import (
    bahdanau2015_length,
    copying,
    coverage_vs_supervised,
    hard_vs_soft,
    luong2015_ablation,
    small_text,
    transformer_vs_rnn,
)
from experiments.kit import score_means, sentence_bleu, sentence_measures
from experiments.kit.variants import by_cell

RESULTS = Path("docs/results")


@dataclasses.dataclass(frozen=True)
class ResultComparison:
    """Two cells of an experiment whose scores the README reports.

    Attributes:
      what: The comparison in words, the first cell first.
      experiment: The experiment's module, after which its page is named.
      cells: The names of the two cells.
      measures: Names of `sentence_measures.MEASURES`.
      scores: Metrics of the test split in place of these, by name, with what they are called.
    """

    what: str
    experiment: ModuleType
    cells: tuple[str, str]
    measures: Sequence[str] = ("bleu",)
    scores: Mapping[str, str] = dataclasses.field(default_factory=dict)


COMPARISONS = (
    ResultComparison(
        "Additive attention against one fixed vector (Bahdanau et al. 2015)",
        bahdanau2015_length,
        ("attention_all", "fixed_all"),
    ),
    ResultComparison(
        "Global attention with the general score against none (Luong et al. 2015)",
        luong2015_ablation,
        ("global_general_feed", "reverse"),
    ),
    ResultComparison(
        "The Transformer against RNNsearch (Vaswani et al. 2017)",
        transformer_vs_rnn,
        ("transformer", "recurrent"),
    ),
    ResultComparison(
        "Supervised attention, squared error, against additive attention (Liu et al. 2016)",
        coverage_vs_supervised,
        ("29k_mse_hmm", "29k_base"),
        ("aer", "bleu"),
    ),
    ResultComparison(
        "Exact monotonic hard attention against soft attention (Wu and Cotterell 2019)",
        hard_vs_soft,
        ("turkish_medium.exact_monotonic", "turkish_medium.soft"),
        scores={"exact_match": "right inflections of Turkish words (%)"},
    ),
    ResultComparison(
        "A pointer-generator against the replacement of unknown words (See et al. 2017)",
        copying,
        ("django.pointer_generator", "django.replaced"),
        scores={"exact_match": "right lines of Python (%)"},
    ),
)


def main_results() -> str:
    """Returns the table as Markdown: each comparison, linked to its page, with its result."""
    compared = ((each.what, _reached(each), f"{each.experiment.NAME}.md") for each in COMPARISONS)
    rows = [
        [f"[{what}]({RESULTS / page})", numbers]
        for what, numbers, page in (_pronunciation(), *compared, _small_text(), _speed())
    ]
    return tables.table(["what, with its page", "what came out"], rows).replace("---:", "---")


def _reached(comparison: ResultComparison) -> str:
    """Formats the scores of the two cells, each as a mean over its seeds."""
    runs = [run for run in _finished(comparison.experiment) if run.cell in comparison.cells]
    cells = [[run for run in runs if run.cell == cell] for cell in comparison.cells]
    if comparison.scores:
        reached = zip(*(score_means.means(cell, comparison.scores) for cell in cells), strict=True)
        return ", ".join(
            f"{label} {first} against {second}"
            for label, (first, second) in zip(comparison.scores.values(), reached, strict=True)
        )
    found = [[_measures(run) for run in cell] for cell in cells]
    parts = []
    for measure in comparison.measures:
        first, second = (
            tables.with_deviation(seeds.seed_mean([run[measure] for run in cell])) for cell in found
        )
        label = sentence_measures.MEASURES[measure].label
        parts.append(f"{label} {first} against {second}")
    return ", ".join(parts)


def _finished(experiment: ModuleType) -> list[GridRun]:
    """Returns the runs of an experiment that have records."""
    return [run for run in experiment.make_grid().runs(Path("runs"), RESULTS) if run.is_finished()]


def _measures(run: GridRun) -> Mapping[str, seeds.SentenceCounts]:
    """Reads the counts of each test sentence: of all measures, or of BLEU only."""
    # Experiments keep counts of several measures, or of BLEU alone where they test by length.
    if sentence_measures.FILE in run.grid.kept:
        return sentence_measures.of_run(run)
    return {"bleu": sentence_bleu.of_run(run, "test")}


def _pronunciation() -> tuple[str, str, str]:
    record = archive.load(RESULTS / "configs" / archive.FILE).outline(("g2p_cmudict", 0))
    scores = record.results["test"]
    numbers = (
        f"phoneme error rate {scores['per_no_stress']:.2f} %, word error rate "
        f"{scores['wer_no_stress']:.2f} %, without stress"
    )
    return "Pronunciation of English, trained at full length (CMUdict)", numbers, "configs.md"


def _small_text() -> tuple[str, str, str]:
    """Returns the row on one's own text: what to expect, and after how long, by its size."""
    cells = by_cell(_finished(small_text))
    numbers = (
        f"BLEU {small_text.bleu(cells[cell])} of {int(cell):,} pairs, minutes: "
        f"{small_text.duration(cells[cell])}"
        for cell in map(str, small_text.SIZES)
    )
    runs = [
        run for cell in map(str, small_text.SIZES)
        for run in small_text.with_all_cores(cells[cell])
    ]  # fmt: skip
    cores = " or ".join(sorted({str(run.facts()["hardware"]["cpus"]) for run in runs}))
    what = f"One's own text by the printed command, on {cores} CPU cores, with attention maps"
    return what, "; ".join(numbers), f"{small_text.NAME}.md"


def _speed() -> tuple[str, str, str]:
    """Returns the row on speed: how many times as long others take for the same step."""
    path = RESULTS / "speed" / "training.json"
    result = json.loads(path.read_text(encoding="utf-8"))["batch_64"][0]
    _, *others = result["contenders"].items()  # the first is this project
    ratios = (f"{name} {each['first_against_it']['median']:.2f}" for name, each in others)
    what = f"Time of a training step, 64 sentences of 25 tokens, {result['hardware']['cpu']}"
    return what, f"{', '.join(ratios)} times as long as here", "speed/training.md"
