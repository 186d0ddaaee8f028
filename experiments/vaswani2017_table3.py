"""The Transformer's ablation; see `USAGE`.

Reproduces: Vaswani et al., "Attention is all you need", NIPS 2017, table 3.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.evaluation import seeds
from attention_jax.plotting.score_dots import score_dots
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    attention_record,
    measure_tables,
    page,
    pictures,
    program,
    sentence_measures,
)
from experiments.kit.score_panels import score_panels
from experiments.kit.training_curves import mean_curve
from experiments.kit.variants import Variant, grid_of

NAME = "vaswani2017_table3"
TITLE = "The Transformer's ablation"
USAGE = """
Reproduces table 3 of Vaswani et al. 2017 at a small scale, on Multi30k from English to German:
heads at constant cost, depth of keys, layers, depth, feed-forward depth, dropout, label smoothing
and learned positions; three seeds each. 57 runs.

usage: python -m experiments.vaswani2017_table3 [--OPTION=VALUE ...]
"""
_DEPTH, _HEADS, _LAYERS, _WIDTH = 64, 4, 3, 256
_STACKS = ("model.sources.source.encoder.", "model.decoder.")


@dataclasses.dataclass(frozen=True)
class Row:
    """A row of the table.

    Attributes:
      change: The difference from the base.
      overrides: Its config overrides.
      there: The corresponding change in the paper's table.
      perplexity: Perplexity in the paper, on newstest2013.
      bleu: BLEU in the paper, on newstest2013.
      millions: Millions of parameters in the paper; None where its table leaves them out.
    """

    change: str
    overrides: Mapping[str, Any]
    there: str
    perplexity: float
    bleu: float
    millions: float | None = None


def _stacks(**fields: Any) -> dict[str, Any]:
    """Returns overrides of the encoder and of the decoder."""
    return {f"{stack}{name}": value for stack in _STACKS for name, value in fields.items()}


def _heads(number: int) -> dict[str, Any]:
    return {
        "model.attention.num_heads": number,
        "model.attention.head_dim": _DEPTH // number,
    }


def _depth(depth: int) -> dict[str, Any]:
    return {
        "model.sources.source.input.embedding_dim": depth,
        "model.target_embedding_dim": depth,
        "model.attention.head_dim": depth // _HEADS,
        "schedule.model_depth": depth,  # the peak of `noam` depends on it
    }


def _keys(depth: int) -> dict[str, Any]:
    """Returns overrides that narrow queries and keys, but not values."""
    return {
        "model.attention.head_dim": depth,
        "model.attention.head_value_dim": _DEPTH // _HEADS,
    }


def _smoothing(eps: float) -> dict[str, Any]:
    return {"objectives.nll.label_smoothing": eps}


def rows() -> dict[str, Row]:
    """Returns the rows by their cells, in the paper's order."""
    return {
        "base": Row("base", {}, "base", 4.92, 25.8, 65),
        "heads_1": Row("(A) 1 head of 64", _heads(1), "1 of 512", 5.29, 24.9),
        "heads_2": Row("(A) 2 heads of 32", _heads(2), "4 of 128", 5.00, 25.5),
        "heads_8": Row("(A) 8 heads of 8", _heads(8), "16 of 32", 4.91, 25.8),
        "heads_16": Row("(A) 16 heads of 4", _heads(16), "32 of 16", 5.01, 25.4),
        "keys_4": Row("(B) keys of depth 4", _keys(4), "16", 5.16, 25.1, 58),
        "keys_8": Row("(B) keys of depth 8", _keys(8), "32", 5.01, 25.4, 60),
        "layers_1": Row("(C) 1 layer", _stacks(num_layers=1), "2", 6.11, 23.7, 36),
        "layers_2": Row("(C) 2 layers", _stacks(num_layers=2), "4", 5.19, 25.3, 50),
        "layers_4": Row("(C) 4 layers", _stacks(num_layers=4), "8", 4.88, 25.5, 80),
        "depth_32": Row("(C) depth 32", _depth(32), "256", 5.75, 24.5, 28),
        "depth_128": Row("(C) depth 128", _depth(128), "1,024", 4.66, 26.0, 168),
        "width_128": Row(
            "(C) feed-forward 128", _stacks(feed_forward_dim=128), "1,024", 5.12, 25.4, 53
        ),
        "width_512": Row(
            "(C) feed-forward 512", _stacks(feed_forward_dim=512), "4,096", 4.75, 26.2, 90
        ),
        "dropout_0": Row("(D) dropout 0", _stacks(dropout=0.0), "0", 5.77, 24.6),
        "dropout_2": Row("(D) dropout 0.2", _stacks(dropout=0.2), "0.2", 4.95, 25.5),
        "smoothing_0": Row("(D) label smoothing 0", _smoothing(0.0), "0", 4.67, 25.3),
        "smoothing_2": Row("(D) label smoothing 0.2", _smoothing(0.2), "0.2", 5.47, 25.7),
        "learned": Row(
            "(E) learned positions", _stacks(positions="learned"), "learned", 4.92, 25.7
        ),
    }


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    chosen = rows()
    if smoke:
        chosen = {name: chosen[name] for name in ("base", "layers_1", "learned")}
    variants = {name: Variant(row.change, row.overrides) for name, row in chosen.items()}
    return grid_of(
        NAME, variants, f"{NAME}:multi30k", smoke, after=("experiments.kit.attention_record",),
        kept={sentence_measures.FILE: ("bleu",)}, curves=("perplexity",),
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page and its plot.

    Args:
      grid: The experiment.
      runs: Its finished runs.
      out: Where to write.

    Returns:
      The paths written.
    """
    found = attention_record.by_cell(grid, runs)
    plot = out / grid.name / "scores.png"
    known = rows()
    layout = {"": {known[name].change: name for name in grid.cells}}
    panels = score_panels(layout, found, runs, ("bleu",))
    pictures.save(score_dots(panels, TITLE, reference="base"), plot)
    written = page.write(
        grid, runs, out, TITLE, NAME, **_set_up(grid, runs), table=_table(grid, runs, found),
        resamples=f"{seeds.RESAMPLES:,}", plot=plot.relative_to(out),
    )  # fmt: skip
    return [written, plot]


def _set_up(grid: Grid, runs: Sequence[GridRun]) -> dict[str, object]:
    """Returns what the page says of data, sizes and training, by the template's places."""
    config = runs[0].resolved()
    data, training = config["data"], config["training"]
    return {
        "data": data["name"],
        "layers": _LAYERS,
        "depth": _DEPTH,
        "heads": _HEADS,
        "width": _WIDTH,
        "num_steps": f"{training['num_steps']:,}",
        "batch_size": data["batch_size"],
        "every_steps": f"{training['evaluate_every_steps']:,}",
        "seeds": len(grid.seeds),
    }


def _table(grid: Grid, runs: Sequence[GridRun], found: measure_tables.Found) -> str:
    known, lines = rows(), []
    for name in (name for name in grid.cells if name in found):
        row, of_cell = known[name], [run for run in runs if run.cell == name]
        bleu = [run["bleu"] for run in found[name]]
        p = tables.NOTHING
        # Until the base is finished there is nothing to compare with.
        if name != "base" and "base" in found:
            result = seeds.compare([run["bleu"] for run in found["base"]], bleu)
            p = tables.probability(result.p_value, seeds.RESAMPLES)
        lines.append([
            row.change, str(len(bleu)), _spread(of_cell, "perplexity"),
            tables.with_deviation(seeds.seed_mean(bleu)), p, _spread(of_cell, "chrf"),
            _spread(of_cell, "length_ratio"), _last_fall(of_cell), _millions(of_cell[0]),
            row.there, f"{row.perplexity:g}", f"{row.bleu:g}",
            tables.NOTHING if row.millions is None else f"{row.millions:g}",
        ])  # fmt: skip
    last = f"last {runs[0].resolved()['training']['evaluate_every_steps']:,}, %"
    headings = ["change", "seeds", "perplexity", "BLEU", "p", "chrF", "length ratio", last]
    headings.append("parameters, M")
    there = ["change there", "perplexity there", "BLEU there", "parameters there, M"]
    return tables.table([*headings, *there], lines)


def _spread(runs: Sequence[GridRun], metric: str) -> str:
    return tables.spread([run.scores().get(metric) for run in runs])


def _last_fall(runs: Sequence[GridRun]) -> str:
    """Returns by how many percent perplexity fell between the last two validations."""
    _, perplexities = mean_curve(runs, "perplexity", "validation")
    if len(perplexities) < 2:
        return tables.NOTHING
    return f"{100 * (1 - perplexities[-1] / perplexities[-2]):.1f}"


def _millions(run: GridRun) -> str:
    return f"{run.facts()['num_parameters'] / 1e6:.2f}"


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
