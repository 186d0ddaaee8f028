"""Luong's ablation of attention; see `USAGE`.

Reproduces: Luong, Pham and Manning, "Effective approaches to attention-based neural machine
translation", EMNLP 2015, tables 1, 4 and 6.
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
    page_texts,
    pictures,
    program,
    sentence_measures,
)
from experiments.kit.score_panels import score_panels
from experiments.kit.variants import Variant, grid_of

NAME = "luong2015_ablation"
TITLE = "Luong's ablation: where to attend, with which score, and input feeding"
USAGE = """
Reproduces tables 1, 4 and 6 of Luong et al. 2015 at a small scale, on Multi30k from English to
German: the steps from no attention to local attention, every score with global and with local
attention, with and without input feeding, and alignment error rates; three seeds each. 81 runs,
about five hours on two CPU cores.

usage: python -m experiments.luong2015_ablation [--OPTION=VALUE ...]
"""
HALF_WIDTH = 5
PLACES = ("global", "local_m", "local_p")
SCORES = ("location", "dot", "general", "concat")
_DIM = 192
_MEASURES = ("bleu", "aer", "match", "match_after", "unattended", "missing", "repeated")


@dataclasses.dataclass(frozen=True)
class AblationSystem:
    """A row of the tables.

    Attributes:
      label: Its name in tables.
      overrides: Its config overrides.
      perplexity: In the paper's table 1 or 4, as printed if that is no number; None if the paper
        has no such row.
      bleu: BLEU in the same table, before unknown words are replaced.
      aer: AER in the paper's table 6.
    """

    label: str
    overrides: Mapping[str, Any]
    perplexity: float | str | None = None
    bleu: float | None = None
    aer: float | None = None


_NO_ATTENTION = {
    "model.attention.name": "none",
    "model.attention.conditioning": "initial_state",
    "model.decoder.input_feeding": False,
}
_ENCODER = "model.sources.source.encoder"
_NO_DROPOUT = {"model.embedding_dropout": 0.0, "model.output_dropout": 0.0}

# (perplexity, BLEU, AER) in the paper; None where it reports no number.
_PAPER: Mapping[str, tuple[float | str | None, float | None, float | None]] = {
    "global_location": (7.3, 16.8, None),
    "global_location_feed": (6.4, 18.1, 39.0),
    "global_dot_feed": (6.1, 18.6, None),
    "global_general_feed": (6.1, 17.3, None),
    "global_concat_feed": (6.7, None, None),
    "local_m_dot_feed": ("> 7.0", None, None),
    "local_m_general_feed": (6.2, 18.6, 34.0),
    "local_m_concat_feed": (7.1, None, None),
    "local_p_dot_feed": (6.6, 18.0, None),
    "local_p_general_feed": (5.9, 19.0, 36.0),
    "local_p_concat_feed": (7.1, None, None),
}
STEPS = (
    "base", "reverse", "dropout", "global_location", "global_location_feed", "local_p_general_feed",
)  # fmt: skip


def _attention(place: str, score: str) -> dict[str, Any]:
    """Returns the overrides of a mechanism."""
    # Local attention is a mechanism of its own, which has the score as a part.
    prefix = "model.attention." if place == "global" else "model.attention.score."
    fields: dict[str, Any] = {f"{prefix}name": f"luong_{score}"}
    if score == "concat":
        fields[f"{prefix}attention_dim"] = _DIM
    if place != "global":
        fields |= {"model.attention.name": place, "model.attention.half_width": HALF_WIDTH}
        if score == "location":
            # Location scores have a row for each slot, here for each slot of the window.
            fields[f"{prefix}max_positions"] = 2 * HALF_WIDTH + 1
    if place == "local_p":
        fields["model.attention.prediction_dim"] = _DIM
    return fields


def systems() -> dict[str, AblationSystem]:
    """Lists all systems by name, those of the paper's tables first."""
    found = {
        "base": AblationSystem(
            "base", {**_NO_ATTENTION, **_NO_DROPOUT, f"{_ENCODER}.direction": "forward"},
            10.6, 11.3,
        ),
        "reverse": AblationSystem("+ reverse", {**_NO_ATTENTION, **_NO_DROPOUT}, 9.9, 12.6),
        "dropout": AblationSystem("+ dropout", _NO_ATTENTION, 8.1, 14.0),
    }  # fmt: skip
    names = {}
    for feeding in (True, False):
        for place in PLACES:
            for score in SCORES:
                name = f"{place}_{score}{'_feed' if feeding else ''}"
                label = f"{place.replace('_', '-')} ({score}){'' if feeding else ', no feeding'}"
                overrides = {
                    **_attention(place, score), "model.decoder.input_feeding": feeding
                }  # fmt: skip
                names[name] = AblationSystem(label, overrides, *_PAPER.get(name, ()))
    # Merged first, since a dict keeps the place of a key's first appearance.
    published = {name: system for name, system in names.items() if name in _PAPER}
    return {**found, **published, **names}


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    chosen = systems()
    if smoke:
        chosen = {name: chosen[name] for name in STEPS}
    variants = {name: Variant(system.label, system.overrides) for name, system in chosen.items()}
    return grid_of(
        NAME, variants, f"{NAME}:multi30k", smoke, after=("experiments.kit.attention_record",),
        kept={sentence_measures.FILE: _MEASURES},
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
    panels = score_panels(_layout(), found, runs, ("bleu", "aer"))
    pictures.save(score_dots(panels, "Luong's ablation"), plot)
    fed = [name for name in found if name.endswith("_feed")]
    unfed = [name for name in found if name.startswith(PLACES) and name not in fed]
    written = page.write(
        grid, runs, out, TITLE, NAME, **_set_up(grid, runs), plot=plot.relative_to(out),
        steps=_main_table(runs, found, STEPS), with_feeding=_main_table(runs, found, fed),
        without_feeding=_main_table(runs, found, unfed), comparisons=_comparisons(found),
        resamples=f"{seeds.RESAMPLES:,}",
    )  # fmt: skip
    return [written, plot]


def _layout() -> dict[str, dict[str, str]]:
    """Arranges the cells for the plot: by series, then by the label of their line."""
    known = systems()
    layout = {
        "no attention": {known[name].label: name for name in STEPS[:3]},
        "without input feeding": {},
        "with input feeding": {},
    }
    for name in known:
        if name.startswith(PLACES):
            series = "with" if name.endswith("_feed") else "without"
            line = known[f"{name.removesuffix('_feed')}_feed"].label
            layout[f"{series} input feeding"][line] = name
    return layout


def _set_up(grid: Grid, runs: Sequence[GridRun]) -> dict[str, object]:
    """Returns what the page says of data, sizes and training, by the template's places."""
    config = runs[0].resolved()
    source = config["model"]["sources"]["source"]
    return {
        **page_texts.set_up(grid, config),
        "hidden": source["encoder"]["hidden_dim"],
        "embedding": source["input"]["embedding_dim"],
        "half_width": HALF_WIDTH,
    }


def _main_table(
    runs: Sequence[GridRun], found: measure_tables.Found, names: Sequence[str]
) -> str:
    known = systems()
    rows = []
    for name in (name for name in names if name in found):
        system = known[name]
        perplexities = [run.scores()["perplexity"] for run in runs if run.cell == name]
        measured = [
            tables.with_deviation(seeds.seed_mean([run[measure] for run in found[name]]))
            if all(measure in run for run in found[name])
            else tables.NOTHING
            for measure in _MEASURES
        ]
        rows.append([
            system.label, str(len(found[name])), tables.spread(perplexities), *measured,
            *map(_number, (system.perplexity, system.bleu, system.aer)),
        ])  # fmt: skip
    headings = [sentence_measures.MEASURES[measure].label for measure in _MEASURES]
    return tables.table(
        ["system", "seeds", "perplexity", *headings, "perplexity there", "BLEU there", "AER there"],
        rows,
    )


def _comparisons(found: measure_tables.Found) -> str:
    """Returns the sections that vary input feeding, the place and the score, one at a time."""
    return "\n\n".join(
        f"## {heading}\n\n{measure_tables.contrasts(found, title, pairs, ('bleu', 'aer'))}"
        for heading, (title, pairs) in comparisons().items()
    )


def comparisons() -> dict[str, tuple[str, dict[str, tuple[str, str]]]]:
    """Lists the pairs of cells that are tested: by heading, a title and pairs by their row."""
    known = systems()
    fed = [(place, score) for place in PLACES for score in SCORES]
    name = "{}_{}_feed".format
    return {
        "What input feeding changes": ("feeding against none", {
            known[name(*each)].label: (name(*each).removesuffix("_feed"), name(*each))
            for each in fed
        }),
        "What the place changes, with input feeding": ("local against global", {
            known[name(place, score)].label: (name("global", score), name(place, score))
            for place, score in fed if place != "global"
        }),
        "What the score changes, with input feeding": ("against dot in the same place", {
            known[name(place, score)].label: (name(place, "dot"), name(place, score))
            for place, score in fed if score != "dot"
        }),
    }  # fmt: skip


def _number(value: float | str | None) -> str:
    if value is None:
        return tables.NOTHING
    return value if isinstance(value, str) else f"{value:g}"


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
