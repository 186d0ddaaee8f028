"""Attention against a fixed vector by sentence length; see `USAGE`.

Reproduces: Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and
translate", ICLR 2015, table 1 and the figure of BLEU by sentence length.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.evaluation import seeds
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import length_tables, page, page_texts, program, sentence_bleu
from experiments.kit.joined_sentences import NUMBERS
from experiments.kit.length_tables import sentences_of
from experiments.kit.variants import Variant, grid_of

NAME = "bahdanau2015_length"
TITLE = "Attention against a fixed vector, by sentence length"
USAGE = """
Reproduces table 1 and the length figure of Bahdanau et al. 2015 at a small scale, on Multi30k from
English to German: with attention and with a fixed vector, trained on short sentences and on all,
three seeds each. Twelve runs, about an hour on two CPU cores.

usage: python -m experiments.bahdanau2015_length [--OPTION=VALUE ...]
"""
SHORT_WORDS = 10
ATTENTION = {"model.attention.name": "bahdanau"}
FIXED_VECTOR = {"model.attention.name": "none", "model.attention.conditioning": "every_step"}


@dataclasses.dataclass(frozen=True)
class LengthSystem:
    """A row of the paper's table 1.

    Attributes:
      label: How tables call ours.
      paper: Its name in the paper.
      bleu: Its BLEU there, on all sentences of newstest2014.
    """

    label: str
    paper: str
    bleu: float


SYSTEMS = {
    "attention_all": LengthSystem("attention, all lengths", "RNNsearch-50", 26.75),
    "attention_short": LengthSystem("attention, short only", "RNNsearch-30", 21.50),
    "fixed_all": LengthSystem("fixed vector, all lengths", "RNNencdec-50", 17.82),
    "fixed_short": LengthSystem("fixed vector, short only", "RNNencdec-30", 13.93),
}
# The paper's claims: (better, worse).
CLAIMS = (
    ("attention_all", "fixed_all"),
    ("attention_short", "fixed_short"),
    ("attention_short", "fixed_all"),
    ("attention_all", "attention_short"),
    ("fixed_all", "fixed_short"),
)


def make_grid(smoke: bool = False) -> Grid:
    """Returns the twelve runs, or four tiny ones on made-up data."""
    short: Mapping[str, Any] = {"data.max_train_source_words": SHORT_WORDS}
    if smoke:
        # The made-up sentences are shorter, and counted in tokens.
        short = {"data.max_source_length": 5}
    cells = {
        "attention_short": {**ATTENTION, **short},
        "attention_all": ATTENTION,
        "fixed_short": {**FIXED_VECTOR, **short},
        "fixed_all": FIXED_VECTOR,
    }
    variants = {cell: Variant(SYSTEMS[cell].label, changed) for cell, changed in cells.items()}
    return grid_of(
        NAME, variants, f"{NAME}:multi30k", smoke, after=("experiments.kit.joined_sentences",),
        kept={sentence_bleu.FILE: None},
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page and the two plots.

    Args:
      grid: The experiment.
      runs: Its finished runs.
      out: Where to write.

    Returns:
      The paths written.
    """
    members = {SYSTEMS[cell].label: of_cell for cell, of_cell in _by_cell(runs).items()}
    by_length, plots = length_tables.sections(members, out / grid.name)
    written = page.write(
        grid, runs, out, TITLE, NAME, **_set_up(grid, runs), main_table=_main_table(runs),
        claims=_claims(runs), resamples=f"{seeds.RESAMPLES:,}", **by_length,
        joined_table=_joined_table(runs),
    )  # fmt: skip
    return [written, *plots]


def _set_up(grid: Grid, runs: Sequence[GridRun]) -> dict[str, object]:
    """Returns what the page says of data, sizes and training, by the template's places."""
    config = runs[0].resolved()
    source = config["model"]["sources"]["source"]
    return {
        **page_texts.set_up(grid, config),
        "short_words": SHORT_WORDS,
        "embedding": source["input"]["embedding_dim"],
        "encoder": source["encoder"]["hidden_dim"],
        "decoder": config["model"]["decoder"]["hidden_dim"],
    }


def _main_table(runs: Sequence[GridRun]) -> str:
    headings = ["system", "seeds", "BLEU, mean ± deviation", "95 % interval", "BLEU of each seed",
                "training pairs", "parameters", "paper's", "BLEU there"]  # fmt: skip
    rows = []
    for cell, of_cell in _by_cell(runs).items():
        system, facts = SYSTEMS[cell], of_cell[0].facts()
        values = seeds.seed_mean(sentences_of(of_cell))
        rows.append([
            system.label, str(len(of_cell)), tables.with_deviation(values),
            tables.interval(values), _each_bleu(of_cell), f"{facts['num_train_pairs']:,}",
            f"{facts['num_parameters']:,}", system.paper, f"{system.bleu:.2f}",
        ])  # fmt: skip
    return tables.table(headings, rows)


def _claims(runs: Sequence[GridRun]) -> str:
    by_cell = _by_cell(runs)
    rows = []
    for better, worse in CLAIMS:
        if better not in by_cell or worse not in by_cell:
            continue
        found = seeds.compare(sentences_of(by_cell[worse]), sentences_of(by_cell[better]))
        p = tables.probability(found.p_value, seeds.RESAMPLES)
        theirs = SYSTEMS[better].bleu - SYSTEMS[worse].bleu
        rows.append([
            f"{SYSTEMS[better].label} – {SYSTEMS[worse].label}", f"{found.difference:+.2f}",
            tables.interval(found), p, f"{found.wins} of {found.pairs}", f"{theirs:+.2f}",
        ])  # fmt: skip
    headings = ["difference", "BLEU", "95 % interval", "p", "pairs of seeds won", "in the paper"]
    return tables.table(headings, rows)


def _joined_table(runs: Sequence[GridRun]) -> str:
    rows = []
    for cell, of_cell in _by_cell(runs).items():
        scores = [
            tables.with_deviation(seeds.seed_mean(sentences_of(of_cell, (split,))))
            for split in ("test", *(f"joined_{number}" for number in NUMBERS))
        ]
        rows.append([SYSTEMS[cell].label, *scores])
    headings = ["system", "single", *(f"joined by {number}" for number in NUMBERS)]
    return tables.table(headings, rows)


def _by_cell(runs: Sequence[GridRun]) -> dict[str, list[GridRun]]:
    """Groups runs by system, in the paper's order."""
    groups = {cell: [run for run in runs if run.cell == cell] for cell in SYSTEMS}
    return {cell: members for cell, members in groups.items() if members}


def _each_bleu(runs: Sequence[GridRun]) -> str:
    return ", ".join(f"{sentences.bleu:.2f}" for sentences in sentences_of(runs))


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
