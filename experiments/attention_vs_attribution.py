"""Attention against attribution; see `USAGE`.

The claims: Ding, Xu and Koehn (WMT 2019), that what predictions depend on aligns words better than
attention does; Kobayashi, Kuribayashi, Yokoi and Inui (EMNLP 2020), that attention does so when the
length of what it averages is counted.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from attention_jax.analysis.attribution import ATTRIBUTIONS
from attention_jax.evaluation import seeds
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    alignment_variants,
    attribution_record,
    measure_tables,
    page,
    program,
    score_means,
)
from experiments.kit.attribution_record import AER, AGREEMENT, ATTENTION
from experiments.kit.sentence_measures import SentenceMeasure
from experiments.kit.variants import Cells, Variant, by_cell, grid_of

NAME = "attention_vs_attribution"
TITLE = "Attention against attribution: where a model looks, and what it depends on"
USAGE = """
Compares attention with attributions (input x gradient, integrated gradients, occlusion, value
norms) by AER and by how often they name the same word, for models without and with coverage or
supervised alignment: the variants of coverage_vs_supervised with all pairs of Multi30k from English
to German, three seeds each. 54 runs, of which the 15 of
--only=base,neural,see_loss,ce_hmm,mse_hmm are enough for a page.

usage: python -m experiments.attention_vs_attribution [--OPTION=VALUE ...]
"""
_KINDS = ("", "coverage", "supervised")
_OF_SMOKE = (alignment_variants.BASE, "neural")
# For each system the measures of each of its runs, by name and measure.
Found = Mapping[str, Sequence[Mapping[str, Mapping[str, SentenceMeasure]]]]


def systems() -> dict[str, Variant]:
    """Returns the base and the variants that have coverage or supervision, by name."""
    return {
        name: Variant(variant.label, variant.overrides)
        for name, variant in alignment_variants.VARIANTS.items()
        if variant.kind in _KINDS
    }


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    chosen = systems()
    if smoke:  # whose text no aligner has linked
        chosen = {name: chosen[name] for name in _OF_SMOKE}
    return grid_of(
        NAME, chosen, "coverage_vs_supervised:multi30k", smoke,
        after=("experiments.kit.attribution_record",), kept={attribution_record.FILE: None},
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page; returns its path."""
    cells = by_cell(runs)
    found = {cell: [attribution_record.of_run(run) for run in of] for cell, of in cells.items()}
    return [page.write(
        grid, runs, out, TITLE, NAME, errors=_errors(cells, found), agreement=_agreement(found),
        sure=measure_tables.SURE, likely=measure_tables.LIKELY, resamples=f"{seeds.RESAMPLES:,}",
    )]  # fmt: skip


def _errors(cells: Cells, found: Found) -> str:
    """Makes a row for each system: BLEU, the AER of its attention, and that of each attribution."""
    methods, rows = _methods(), []
    for cell, measured in found.items():
        attention = _of(measured, ATTENTION, AER)
        rows.append([
            systems()[cell].label, str(len(measured)), *score_means.means(cells[cell], ("bleu",)),
            _mean(attention),
            *(_against(attention, _of(measured, method, AER)) for method in methods),
        ])  # fmt: skip
    return tables.table(["system", "seeds", "BLEU ↑", "attention ↓", *methods.values()], rows)


def _agreement(found: Found) -> str:
    """Makes a row for each system: how often each attribution names the word of attention."""
    methods = _methods()
    rows = [
        [systems()[cell].label, *(_mean(_of(measured, method, AGREEMENT)) for method in methods)]
        for cell, measured in found.items()
    ]
    return tables.table(["system", *methods.values()], rows)


def _methods() -> dict[str, str]:
    """Returns the labels of the attribution methods by their names."""
    return {name: ATTRIBUTIONS.find(name).METHOD.label for name in ATTRIBUTIONS.names()}


def _of(
    measured: Sequence[Mapping[str, Mapping[str, SentenceMeasure]]], name: str, measure: str
) -> list[SentenceMeasure]:
    """Returns a measure of each run; none of runs that lack it, as on text without gold links."""
    return [run[name][measure] for run in measured if measure in run.get(name, {})]


def _mean(counts: Sequence[SentenceMeasure]) -> str:
    return tables.with_deviation(seeds.seed_mean(counts)) if counts else tables.NOTHING


def _against(attention: Sequence[SentenceMeasure], other: Sequence[SentenceMeasure]) -> str:
    """Returns a mean, with stars where it differs from that of attention in the same runs."""
    if not (attention and other):
        return _mean(other)
    p = seeds.compare(attention, other).p_value
    stars = " **" if p < measure_tables.SURE else " *" if p < measure_tables.LIKELY else ""
    return _mean(other) + stars


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
