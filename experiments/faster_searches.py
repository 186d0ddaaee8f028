"""Searches in fewer bits and over fewer words; see `USAGE`.

The claim: that they cost next to nothing in BLEU (Jean et al. 2015, section 3.3, of shortlists from
a lexicon; Quinn and Ballesteros 2018 of 8-bit integers). What they save is on the page of decoding
speed.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import measure_tables, page, program, search_record
from experiments.kit.search_record import BLEU, CHANGED, EXACT, SEARCHES
from experiments.kit.sentence_measures import SentenceMeasure
from experiments.kit.variants import Variant, by_cell, grid_of

NAME = "faster_searches"
TITLE = "Searches in 8-bit integers, and over shortlists: what they cost"
USAGE = """
Translates test 2016 of Multi30k, English to German, with searches in float32 over all words, in
int8, and over shortlists from a lexicon, by a recurrent network and a Transformer: BLEU, its
difference with its significance, and the share of outputs that change; three seeds each. Six runs.

usage: python -m experiments.faster_searches [--OPTION=VALUE ...]
"""
_LEXICON = {"data.lexicon.method": "ibm1", "data.lexicon.size": 50}
SYSTEMS = {
    "recurrent": Variant("conditional GRU", _LEXICON, config="coverage_vs_supervised"),
    "transformer": Variant(
        "Transformer, 10 epochs", {**_LEXICON, "training.num_epochs": 10.0}, config="vaswani2017"
    ),
}
# For each system and search the measures of each seed.
Found = Mapping[str, Mapping[str, Sequence[Mapping[str, SentenceMeasure]]]]


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or tiny ones on made-up data."""
    return grid_of(
        NAME, SYSTEMS, ":multi30k", smoke,
        after=("experiments.kit.search_record",), kept={search_record.FILE: None},
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page; returns its path."""
    found = {
        system: _by_search([search_record.of_run(run) for run in of_system])
        for system, of_system in by_cell(runs).items()
    }
    labels = {name: search.label for name, search in SEARCHES.items()}
    compared = [
        f"{SYSTEMS[system].label}:\n\n{measure_tables.differences(searches, labels, BLEU, EXACT)}"
        for system, searches in found.items()
    ]
    return [page.write(
        grid, runs, out, TITLE, NAME, scores=_scores(found), differences="\n\n".join(compared),
        legend=measure_tables.LEGEND_OF_DIFFERENCES, data=runs[0].resolved()["data"]["name"],
    )]  # fmt: skip


def _by_search(
    runs: Sequence[Mapping[str, Mapping[str, SentenceMeasure]]],
) -> dict[str, list[Mapping[str, SentenceMeasure]]]:
    return {name: [run[name] for run in runs] for name in SEARCHES}


def _scores(found: Found) -> str:
    rows = [
        [SYSTEMS[system].label, SEARCHES[name].label, str(len(of_search)),
         *(measure_tables.mean(of_search, measure) for measure in (BLEU, CHANGED))]
        for system, searches in found.items()
        for name, of_search in searches.items()
    ]  # fmt: skip
    return tables.table(["system", "search", "seeds", "BLEU ↑", "other outputs, %"], rows)


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
