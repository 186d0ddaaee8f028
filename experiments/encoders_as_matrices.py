"""Compares encoders: sentences as matrices; see `USAGE`.

No paper has this table. Its rows are encoders of Bahdanau, Cho and Bengio (2015), of Gehring, Auli,
Grangier and Dauphin (2017), of Vaswani et al. (2017) and of Cheng, Dong and Lapata (2016), all
under one decoder.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.evaluation import seeds
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    attention_record,
    length_tables,
    measure_tables,
    page,
    page_texts,
    program,
    sentence_bleu,
    sentence_measures,
)
from experiments.kit.training_curves import tokens_per_second
from experiments.kit.variants import Cells, Variant, by_cell, grid_of

NAME = "encoders_as_matrices"
TITLE = "Sentences as matrices: what the vectors of a sentence must know of one another"
USAGE = """
Compares encoders that return one vector for each token under one decoder, and with a single vector
for the whole sentence, on Multi30k from English to German: BLEU, also by length, AER and the speed
of training; parameters within 10 %, three seeds each. Eighteen runs.

usage: python -m experiments.encoders_as_matrices [--OPTION=VALUE ...]
"""
BASE = "recurrent"
_POSITIONS = 64  # more than any single source has; joined ones may have more


@dataclasses.dataclass(frozen=True)
class EncoderSystem:
    """A row of the table.

    Attributes:
      label: Its name in tables.
      sees: Which tokens one vector of the encoder depends on.
      encoder: Its encoder, sized so that the whole model has as many parameters as the others.
      overrides: Further config overrides.
    """

    label: str
    sees: str
    encoder: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    overrides: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    @property
    def all_overrides(self) -> dict[str, Any]:
        """The overrides of its cell."""
        where = "model.sources.source.encoder"
        encoder = {f"{where}.{name}": value for name, value in self.encoder.items()}
        return {**encoder, **self.overrides}


SYSTEMS: Mapping[str, EncoderSystem] = {
    "recurrent": EncoderSystem("bidirectional GRU", "all tokens, the nearer the better"),
    "fixed_vector": EncoderSystem(
        "bidirectional GRU, one vector", "all tokens, for the whole sentence",
        overrides={"model.attention.name": "none"},
    ),
    "concatenation": EncoderSystem(
        "concatenation", "its token and position",
        {"name": "concatenation", "max_positions": _POSITIONS},
        {"model.sources.source.input.embedding_dim": 192},
    ),
    "convolutional": EncoderSystem(
        "convolutional", "7 tokens as a key, 5 as a value",
        {"name": "convolutional", "hidden_dim": 160, "key_layers": 3, "max_positions": _POSITIONS},
    ),
    "self_attention": EncoderSystem(
        "self-attention", "all tokens",
        {
            "name": "self_attention", "num_layers": 2, "feed_forward_dim": 512,
            "norm_order": "pre", "dropout": 0.1, "self_attention.name": "multi_head",
            "self_attention.num_heads": 4, "self_attention.head_dim": 32,
        },
    ),
    "lstmn": EncoderSystem(
        "bidirectional LSTMN", "all tokens, those read before by attention",
        {"name": "lstmn", "hidden_dim": 112, "attention_dim": 128, "direction": "bidirectional"},
    ),
}  # fmt: skip


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    variants = {
        name: Variant(system.label, system.all_overrides) for name, system in SYSTEMS.items()
    }
    return grid_of(
        NAME, variants, f"{NAME}:multi30k", smoke,
        after=("experiments.kit.attention_record", "experiments.kit.joined_sentences"),
        kept={sentence_measures.FILE: ("bleu", "aer"), sentence_bleu.FILE: None},
        curves=("tokens_per_second",),
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
    found = attention_record.by_cell(grid, runs)
    members = by_cell(runs)
    by_length, plots = length_tables.sections(
        {SYSTEMS[cell].label: members[cell] for cell in found}, out / grid.name
    )
    written = page.write(
        grid, runs, out, TITLE, NAME, **_set_up(grid, runs),
        main_table=_main_table(members, found), legend=measure_tables.LEGEND_OF_DIFFERENCES,
        differences="\n".join(_differences(found)), **by_length,
    )  # fmt: skip
    return [written, *plots]


def _set_up(grid: Grid, runs: Sequence[GridRun]) -> dict[str, object]:
    """Returns what the page says of data, sizes and training, by the template's places."""
    # What the page says of data, decoder and training is the same in all cells.
    config = next((run for run in runs if run.cell == BASE), runs[0]).resolved()
    decoder = config["model"]["decoder"]
    return {**page_texts.set_up(grid, config), "decoder": decoder["hidden_dim"]}


def _main_table(runs: Cells, found: measure_tables.Found) -> str:
    headings = ["encoder", "a vector knows", "seeds", "BLEU ↑", "95 % interval", "AER ↓",
                "tokens/s ↑", "parameters"]  # fmt: skip
    rows = []
    for cell, of_cell in found.items():
        bleu = seeds.seed_mean([run["bleu"] for run in of_cell])
        has_links = all("aer" in run for run in of_cell)
        members = runs[cell]
        rows.append([
            SYSTEMS[cell].label, SYSTEMS[cell].sees, str(len(of_cell)),
            tables.with_deviation(bleu), tables.interval(bleu),
            tables.with_deviation(seeds.seed_mean([run["aer"] for run in of_cell]))
            if has_links else tables.NOTHING,
            f"{np.mean([tokens_per_second(run) for run in members]):,.0f}",
            f"{members[0].facts()['num_parameters']:,}",
        ])  # fmt: skip
    return tables.table(headings, rows)


def _differences(found: measure_tables.Found) -> list[str]:
    if BASE not in found:
        return []
    labels = {cell: SYSTEMS[cell].label for cell in found}
    return [
        part
        for measure in ("bleu", "aer")
        if all(measure in run for run in found[BASE])
        for part in (measure_tables.differences(found, labels, measure, BASE), "")
    ]


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
