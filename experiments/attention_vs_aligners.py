"""Alignments of translation models beside those of statistical aligners; see `USAGE`.

The claim: Chen et al. (EMNLP 2020) and Garg et al. (EMNLP 2019), that a model which knows the word
that it aligns makes fewer errors than the aligner that taught it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.evaluation import seeds
from attention_jax.plotting.score_dots import Score, score_dots
from attention_jax.runs.run_directory import read_json
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from experiments import coverage_vs_supervised as teachers
from experiments.kit import (
    linked_words,
    measure_tables,
    page,
    pictures,
    program,
    sentence_measures,
)
from experiments.kit.variants import (
    MADE_UP,
    Cells,
    Variant,
    by_condition,
    crossed,
    grid_of,
    label_of,
)

NAME = "attention_vs_aligners"
TITLE = "Attention against its teachers: word alignment"
USAGE = """
Compares word alignments of translation models, taught by the links of statistical aligners and
untaught, with those aligners: AER on Multi30k in both directions and symmetrised, and BLEU; three
seeds each. 36 runs. The aligners' own errors are those that experiments.aligner_error_rates keeps.

usage: python -m experiments.attention_vs_aligners [--OPTION=VALUE ...]
"""
BASE = "base"
FORWARD, REVERSE = "en_de", "de_en"
DIRECTIONS = {
    FORWARD: Variant("English to German"),
    REVERSE: Variant(
        "German to English", {"data.source_language": "de", "data.target_language": "en"}
    ),
}
_READ = {
    "objectives.supervised_alignment.step": "reads",
    "objectives.supervised_alignment.unaligned": "ignore",
}
_HEAD = {
    **_READ,
    "model.attention.name": "multi_head",
    "model.attention.num_heads": 2,
    "model.attention.head_dim": 128,
    "model.attention.head_value_dim": 256,
    "model.attention.score.name": "bahdanau",
    "model.attention.score.attention_dim": 128,
    "model.decoder.alignment_head": 0,
}
_ALIGNERS = {
    "module": ("alignment module", {"model.aligner.name": "module"}),
    "full_context": ("full-context aligner", {"model.aligner.name": "full_context"}),
    "two_way": (
        "full-context aligner of both ways",
        {"model.aligner.name": "full_context", "model.aligner.two_way": True},
    ),
}


def _aligner(name: str, method: str) -> Variant:
    """Returns a translator with an aligner of its own beside it, which a method's links teach."""
    label, fields = _ALIGNERS[name]
    overrides = {**_READ, **fields, "data.alignment.method": method}
    return Variant(f"{label}, taught by {method}", overrides)


SYSTEMS = {
    BASE: Variant("attention, untaught"),
    "full_context_agreement": _aligner("full_context", "agreement"),
    "two_way_agreement": _aligner("two_way", "agreement"),
    "two_way_spelling": _aligner("two_way", "spelling"),
    "full_context_spelling": _aligner("full_context", "spelling"),
    "head_spelling": Variant(
        "one of two heads, taught by spelling", {**_HEAD, "data.alignment.method": "spelling"}
    ),
    "module_spelling": _aligner("module", "spelling"),
}
# How the links of both directions are joined, by the name that `linked_words` has for it.
WAYS = {
    teachers.SYMMETRIZATION: teachers.SYMMETRIZATION,
    "product": "products",
    "geometric_mean": "geometric means",
}
ALIGNERS = "29k_"  # what the records of the aligners' errors on all pairs begin with


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data, of one direction."""
    cells = crossed(MADE_UP if smoke else DIRECTIONS, SYSTEMS)
    # One run of a two-way aligner says both.
    told = f"{REVERSE}.two_way"
    cells = {name: cell for name, cell in cells.items() if not name.startswith(told)}
    return grid_of(
        NAME, cells, "coverage_vs_supervised:multi30k", smoke,
        after=("experiments.kit.attention_record", "experiments.kit.linked_words"),
        kept={
            sentence_measures.FILE: ("bleu", "aer"),
            linked_words.LINKS: None,
            linked_words.GOLD: None,
            linked_words.WEIGHTS: None,
            linked_words.OPPOSITE: None,
        },
    )  # fmt: skip


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page and its plot; returns their paths."""
    found = by_condition(runs)
    joined = {how: _joined(found, how) for how in WAYS}
    heuristic, aligners = joined[teachers.SYMMETRIZATION], _aligners(out)
    labels = {name: system.label for name, system in SYSTEMS.items()}
    config = runs[0].resolved()
    differences = [
        measure_tables.differences(each, labels, measure, BASE)
        for each, measure in ((heuristic, "aer"), (_measures(found, FORWARD), "bleu"))
        if BASE in each and len(each) > 1
    ]
    plot = _plot(joined, aligners, out / grid.name / "aer.png")
    return [page.write(
        grid, runs, out, TITLE, NAME, data=config["data"]["name"],
        num_steps=f"{config['training']['num_steps']:,}", method=teachers.SYMMETRIZATION,
        decoder=config["model"]["decoder"]["hidden_dim"], main_table=_table(found),
        joined=_joined_table(joined), aligners=_aligners_table(aligners),
        differences="\n\n".join(differences), legend=measure_tables.LEGEND_OF_DIFFERENCES,
        picture=pictures.shown(plot, out),
    ), *plot]  # fmt: skip


def _plot(
    joined: Mapping[str, measure_tables.Found], aligners: Mapping[str, Any], path: Path
) -> list[Path]:
    """Plots the AER of both directions, joined in each way, where it is known."""
    series = {
        f"by {label}": {label_of(SYSTEMS, name): _dot(runs) for name, runs in joined[how].items()}
        for how, label in WAYS.items()
        if joined[how]
    }
    if not series:
        return []
    first, *_ = series.values()
    first |= {
        f"aligner: {name}": Score(scores["symmetrized"], 0.0) for name, scores in aligners.items()
    }
    pictures.save(score_dots({"AER of both directions ↓": series}), path)
    return [path]


def _measures(found: Mapping[str, Cells], direction: str) -> measure_tables.Found:
    return {
        system: [sentence_measures.of_run(run) for run in runs]
        for system, runs in found.get(direction, {}).items()
    }


def _joined(found: Mapping[str, Cells], how: str) -> measure_tables.Found:
    """Counts the links of both directions of a seed together, of two runs or a two-way aligner."""
    joined = {}
    for system, runs in found.get(FORWARD, {}).items():
        opposite = {run.seed: run for run in found.get(REVERSE, {}).get(system, ())}
        pairs = [(run, opposite[run.seed]) for run in runs if run.seed in opposite]
        pairs += [(run, None) for run in runs if not opposite and linked_words.is_two_way(run)]
        counts = [linked_words.symmetrized(*pair, how) for pair in pairs]
        known = [{"aer": each} for each in counts if each is not None]
        if known:
            joined[system] = known
    return joined


def _table(found: Mapping[str, Cells]) -> str:
    measured = {direction: _measures(found, direction) for direction in found}
    systems = dict.fromkeys(name for each in measured.values() for name in each)
    rows = [
        [label_of(SYSTEMS, system), *(
            measure_tables.mean(measured[direction].get(system, ()), measure)
            for measure in ("aer", "bleu")
            for direction in measured
        )]
        for system in systems
    ]  # fmt: skip
    names = [label_of(DIRECTIONS, direction) for direction in measured]
    headings = [f"{measure} {name}" for measure in ("AER ↓", "BLEU ↑") for name in names]
    return tables.table(["system", *headings], rows)


def _joined_table(joined: Mapping[str, measure_tables.Found]) -> str:
    """Makes the table of both directions, with the interval of each mean over seeds."""
    systems = dict.fromkeys(name for each in joined.values() for name in each)
    rows = []
    for system in systems:
        row = [label_of(SYSTEMS, system)]
        for how in WAYS:
            runs = joined[how].get(system, ())
            row.append(measure_tables.mean(runs, "aer"))
            row.append(
                tables.interval(seeds.seed_mean([run["aer"] for run in runs]))
                if runs else tables.NOTHING
            )  # fmt: skip
        rows.append(row)
    headings = [heading for label in WAYS.values()
                for heading in (f"AER ↓ by {label}", "95 % interval")]  # fmt: skip
    return tables.table(["both directions", *headings], rows) if rows else ""


def _dot(runs: Sequence[Mapping[str, sentence_measures.SentenceMeasure]]) -> Score:
    mean = seeds.seed_mean([run["aer"] for run in runs])
    return Score(mean.mean, mean.deviation if len(runs) > 1 else 0.0)


def _aligners(out: Path) -> Mapping[str, Mapping[str, float]]:
    """Reads the errors of aligners on all pairs, which `aligner_error_rates` has measured."""
    known = read_json(out / teachers.NAME / teachers.TEACHERS, {str: {str: float}}) or {}
    return {
        name.removeprefix(ALIGNERS): scores
        for name, scores in known.items()
        if name.startswith(ALIGNERS)
    }


def _aligners_table(aligners: Mapping[str, Mapping[str, float]]) -> str:
    rows = [
        [name, *(f"{scores[each]:.2f}" for each in ("forward", "reverse", "symmetrized"))]
        for name, scores in aligners.items()
    ]
    headings = ["aligner", *(f"AER ↓ {each.label}" for each in DIRECTIONS.values()), "of both"]
    return tables.table(headings, rows) if rows else ""


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report)
