"""Rationales: selected words against what people have marked; see `USAGE`.

The claims: Lei, Barzilay and Jaakkola 2016, section 5: a generator selects better than attention,
and a recurrent one better than an independent one.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from attention_jax.evaluation import seeds
from attention_jax.plotting.tradeoff import Point, tradeoff
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments.kit import (
    differences,
    kept_counts,
    page,
    pictures,
    program,
    resampled_scores,
    sample_document,
    score_means,
    selected_words,
)
from experiments.kit.templates import titled
from experiments.kit.variants import Cells, Variant, by_cell, grid_of

NAME = "rationales"
TITLE = "Rationales of movie reviews"
USAGE = """
Compares generators of rationales (configs/lei2016.py) on the movie reviews of ERASER: independent
and recurrent ones with REINFORCE, and HardKuma, told to select a twentieth, a tenth or a fifth of
the words; independent and recurrent ones as the paper has them, with a fixed price of a word and
without a baseline; and the best words of attention (configs/yang2016.py, with as small a
vocabulary). Accuracy, the share of words that is selected, seeds that collapsed into none or all of
them, token F1, IOU F1 and precision against what people have marked; both F1 are tested against
those of attention's best words, as many as a generator selects, and recurrent generators against
independent ones. Three seeds each; 36 runs. What tells most comes first, and the 12 runs of
--only=attention,independent_0.05,recurrent_0.05,hard_kuma_0.05 are enough for a page.

usage: python -m experiments.rationales [--OPTION=VALUE ...]
"""
TARGETS = (0.05, 0.1, 0.2)
_SELECTOR, _RATIONALE = "model.generator.selector.name", "objectives.rationale"
SELECTORS = ("independent", "recurrent", "hard_kuma")
_PAPER = {
    f"{_RATIONALE}.target_share": 0.0, f"{_RATIONALE}.sparsity": 3e-4,
    f"{_RATIONALE}.coherence": 2.0, f"{_RATIONALE}.baseline": "none",
    # Without a target there is no cost at it to choose a step by.
    "training.metric": "rationale/cost",
}  # fmt: skip
ATTENTION = "attention"
DRAWN = (5, 10, 20, 30)  # per cent of words that attention weights most
SHOWN = (ATTENTION, *(f"{name}_{TARGETS[0]:g}" for name in ("recurrent", "hard_kuma")))
COLUMNS = {
    "label_accuracy": "accuracy ↑", "selected_share": "words selected",
    "token_f1": "token F1 ↑", "iou_f1": "IOU F1 ↑", "token_precision": "precision ↑",
    "attention_token_f1": "token F1 of weights ↑", "attention_precision_10": "at 10 % ↑",
}  # fmt: skip
_ACCURACY = "label_accuracy"
TESTED = {"token_f1": "token F1", "iou_f1": "IOU F1"}
LITTLE, MUCH = 0.5, 99.5  # per cent of the words; what is beyond has collapsed


def systems(smoke: bool = False) -> dict[str, Variant]:
    """Returns attention, each generator at each share, and those with a price as in the paper."""
    # Rare words are unknown to all, for what is compared is not the vocabulary.
    words = {} if smoke else {"data.vocabulary_size": 4_000}
    found = {ATTENTION: Variant(ATTENTION, words, config="yang2016")}
    for target in TARGETS[:1] if smoke else TARGETS:
        for name in SELECTORS:
            overrides = {_SELECTOR: name, f"{_RATIONALE}.target_share": target}
            found[f"{name}_{target:g}"] = Variant(f"{_words(name)} {target:g}", overrides)
    if not smoke:
        for name in SELECTORS[:2]:
            found[f"{name}_paper"] = Variant(f"{name}, the paper's", {_SELECTOR: name, **_PAPER})
    return found


def _words(name: str) -> str:
    return name.replace("_", " ")


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or tiny ones on made-up data."""
    return grid_of(
        NAME, systems(smoke), "lei2016:eraser_movies", smoke,
        curves=("nll", "accuracy", "rationale/share"),
        after=("experiments.kit.sample_document", "experiments.kit.selected_words"),
        kept={
            sample_document.FILE: None, **kept_counts.kept(selected_words.FILE),
            **resampled_scores.kept(_ACCURACY),
        },
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page, precision over shares, and a document as the first seeds read it."""
    cells, folder = by_cell(runs), out / grid.name
    firsts = {systems()[name].label: cells[name][0] for name in SHOWN if name in cells}
    drawn, picture = folder / "precision.png", sample_document.write_picture(firsts, folder)
    pictures.save(_precision(cells), drawn)
    written = page.write(
        grid, runs, out, TITLE, NAME, scores=_scores(cells), accuracy=_accuracy(cells),
        recurrent=_recurrent(cells),
        differences="\n\n".join(filter(None, (_differences(cells, name) for name in TESTED))),
        precision=pictures.shown([drawn], out), picture=pictures.shown(picture, out),
    )  # fmt: skip
    return [written, drawn, *picture]


def _scores(cells: Cells) -> str:
    """Makes a row for each system."""
    rows = [
        [systems()[name].label, str(len(runs)), *score_means.means(runs, COLUMNS),
         tables.NOTHING if name == ATTENTION else _collapsed(runs)]
        for name, runs in cells.items()
    ]  # fmt: skip
    return tables.table(["system", "seeds", *COLUMNS.values(), "collapsed"], rows)


def _collapsed(runs: Sequence[GridRun]) -> str:
    """Says how many seeds of a generator select next to nothing, or next to everything."""
    shares = [selected_words.of_generator(run).scores["selected_share"] for run in runs]
    return f"{sum(not LITTLE <= share <= MUCH for share in shares)} of {len(shares)}"


def _differences(cells: Cells, judged_by: str) -> str:
    """Makes a row for each generator, tested against attention at the shares that it selects."""
    attention, rows = cells.get(ATTENTION, ()), []
    for name, runs in _generators(cells).items():
        found = [selected_words.of_generator(run, judged_by) for run in runs]
        shares = [one.scores["selected_share"] for one in found]
        base = [selected_words.of_weights(run, shares, judged_by) for run in attention]
        if base:
            scores = [one.scores[judged_by] for one in base]
            test = seeds.compare(base, found)
            rows.append([
                systems()[name].label, tables.spread(shares), tables.spread(scores),
                *tables.tested(test),
            ])  # fmt: skip
    headings = ["generator", "words selected", f"{TESTED[judged_by]} of attention",
                "generator's, against attention's", *differences.HEADINGS]  # fmt: skip
    return tables.table(headings, rows) if rows else ""


def _accuracy(cells: Cells) -> str:
    """Makes a row for each generator: what it costs to read its words alone."""
    return differences.table_of_systems(
        ATTENTION, resampled_scores.keeping(cells, _ACCURACY), resampled_scores.of_run(_ACCURACY),
        systems(), "accuracy, against attention, which reads all words",
    )  # fmt: skip


def _recurrent(cells: Cells) -> str:
    """Makes a row for each recurrent generator, tested against the independent one like it."""
    rows = []
    for name, runs in cells.items():
        base = name.replace("recurrent", "independent")
        if base != name and base in cells:
            pair = {base: cells[base], name: runs}
            rows += differences.rows_against(base, pair, selected_words.of_generator, systems())
    heading = "token F1, against the independent one"
    table = tables.table(["generator", heading, *differences.HEADINGS], rows) if rows else ""
    return titled("Recurrent against independent generators", table)


def _precision(cells: Cells) -> Figure:
    """Draws precision over the share of selected words, of attention at several of them."""
    points = {
        systems()[name].label: _point(
            [selected_words.of_generator(run).scores for run in runs],
            _words(name.rpartition("_")[0]),
        )
        for name, runs in _generators(cells).items()
    }
    for share in DRAWN if ATTENTION in cells else ():
        weighted = [selected_words.of_weights(run, [share]).scores for run in cells[ATTENTION]]
        points[f"{ATTENTION}, {share} %"] = _point(weighted, ATTENTION)
    return tradeoff(points, "words selected (%)", "precision (%)")


def _generators(cells: Cells) -> Cells:
    return {name: runs for name, runs in cells.items() if name != ATTENTION}


def _point(found: Sequence[Mapping[str, float]], group: str) -> Point:
    x, y = ([one[name] for one in found] for name in ("selected_share", "token_precision"))
    spreads = (float(np.std(each, ddof=1)) if len(each) > 1 else 0.0 for each in (x, y))
    return Point(float(np.mean(x)), float(np.mean(y)), *spreads, group)


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
