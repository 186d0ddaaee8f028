"""Coverage against supervised alignment; see `USAGE`."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from attention_jax.evaluation import seeds
from attention_jax.evaluation.over_under import count_repeated, tokenized
from attention_jax.plotting.system_curves import system_curves
from attention_jax.plotting.tradeoff import Point, tradeoff
from attention_jax.runs.files import write_text
from attention_jax.runs.run_directory import read_json
from attention_jax.sweeps import tables
from attention_jax.sweeps.grid import Grid, GridRun
from attention_jax.sweeps.kept_files import kept_lines
from experiments.kit import (
    disagreement,
    measure_tables,
    page,
    pictures,
    program,
    sentence_measures,
    templates,
)
from experiments.kit import dropped_word_counts as untranslated_counts
from experiments.kit.alignment_variants import (
    BASE,
    CLAIMS,
    CONDITIONS,
    CONTRASTS,
    FULL,
    VARIANTS,
    cells,
)
from experiments.kit.claims import claims_table
from experiments.kit.low_resource_gains import gains_section
from experiments.kit.templates import section
from experiments.kit.training_curves import mean_curve
from experiments.kit.variants import SMOKE

NAME = "coverage_vs_supervised"
TITLE = "Coverage against supervised alignment"
USAGE = """
Compares coverage and supervised alignment: one attention model and its variants from the
literature, on Multi30k from English to German, with all training pairs and with 4,000 of them,
three seeds each. About seven hours on two CPU cores for all pairs, and 4.4 for 4,000. Afterwards
experiments.aligner_error_rates measures the teachers and experiments.dropped_words what was left
out; the page shows both with --tables_only.

With --full the same variants, conditions and seeds at the order of size of the papers: embeddings
of 256, GRUs of 512, batches of 128, four times as many updates. That asks for a GPU; it has runs,
records and a page of its own, coverage_vs_supervised_full, for which both programs take --full too.

usage: python -m experiments.coverage_vs_supervised [--full] [--OPTION=VALUE ...]
"""
FULL_NAME = f"{NAME}_full"
TEACHERS = "teachers.json"
SYMMETRIZATION = "grow-diag-final-and"  # of the links that teach
TRANSLATION = ("bleu", "chrf", "repeated", "excess", "missing", untranslated_counts.MEASURE)
ALIGNMENT = ("aer", "saer", "match", "probability_mass", "match_before", "match_after")
COVERAGE = ("unattended", "overattended", "deviation")
# Panels of the plot of curves, by the kind of variant.
PANELS = {"coverage": "coverage", "supervised": "supervision", "both": "both and symmetry",
          "symmetry": "both and symmetry"}  # fmt: skip


def make_grid(smoke: bool = False) -> Grid:
    """Returns all runs, or a few tiny ones on made-up data."""
    chosen = cells()
    if smoke:
        chosen = {f"29k_{name}": VARIANTS[name].overrides for name in (BASE, "neural", "penalty")}
    return Grid(
        name=f"{NAME}_smoke" if smoke else NAME,
        config=f"configs/{NAME}.py:{'smoke' if smoke else 'multi30k'}",
        overrides=SMOKE if smoke else {},
        cells=chosen,
        seeds=(0,) if smoke else (0, 1, 2),
        after=("experiments.kit.attention_record",),
        kept={sentence_measures.FILE: None, disagreement.OUTPUTS: None},
        curves=("perplexity",),
        shared=(disagreement.TEXTS,),
    )


def make_full_grid() -> Grid:
    """Returns all runs at the order of size of the papers."""
    return dataclasses.replace(make_grid(), name=FULL_NAME, cells=cells(full=True))


def write_report(grid: Grid, runs: Sequence[GridRun], out: Path) -> list[Path]:
    """Writes the page, its plots, and the page of sentences.

    Args:
      grid: The experiment.
      runs: Its finished runs.
      out: Where to write.

    Returns:
      The paths written.
    """
    folder = out / grid.name
    _, outputs = disagreement.texts(runs)
    dropped = untranslated_counts.load(folder / untranslated_counts.FILE, outputs)
    found = _found(grid, runs, dropped)
    least = _least(outputs[disagreement.REFERENCE], dropped.get(disagreement.REFERENCE))
    conditions, paths = [], []
    for condition, described in CONDITIONS.items():
        of_condition = _of_condition(found, condition)
        if BASE not in of_condition:
            continue
        its_runs = [run for run in runs if _condition(run) == condition]
        conditions += [
            f"## {described.label}", "",
            *_tables(of_condition, its_runs, least),
            *_teachers(folder / TEACHERS, condition),
        ]  # fmt: skip
        for plot, caption, draw in _plots(folder, condition, of_condition, its_runs):
            pictures.save(draw(described.label), plot)
            conditions += [f"![{caption}]({plot.relative_to(out)})", ""]
            paths.append(plot)
    sentences = folder / "sentences.md"
    write_text(sentences, _sentences_page(runs) + "\n")
    command = f"{NAME} --full" if grid.name == FULL_NAME else NAME
    written = page.write(
        grid, runs, out, TITLE, command, NAME, **_set_up(grid, out), folder=grid.name,
        conditions=section(conditions),
        gains=section(gains_section(found, tuple(CONDITIONS), _labels())),
    )  # fmt: skip
    return [written, sentences, *paths]


def _found(
    grid: Grid, runs: Sequence[GridRun], dropped: Mapping[str, sentence_measures.SentenceMeasure]
) -> measure_tables.Found:
    """Reads the measures of the runs, and adds the counts of `experiments.dropped_words`."""
    found: dict[str, list] = {}
    for cell in grid.cells:
        for run in (run for run in runs if run.cell == cell):
            measures = sentence_measures.of_run(run)
            if run.name in dropped:
                measures[untranslated_counts.MEASURE] = dropped[run.name]
            found.setdefault(cell, []).append(measures)
    return found


def _least(
    references: Sequence[str], dropped: sentence_measures.SentenceMeasure | None
) -> str:
    """Measures the references themselves: no system needs to be below their values."""
    repeated = np.array([count_repeated(words, order=2) for words in tokenized(references)])
    found = {"repeated": sentence_measures.SentenceMeasure("repeated", repeated)}
    if dropped is not None:
        found[untranslated_counts.MEASURE] = dropped
    scores = ", ".join(
        f"{seeds.corpus_score(measure):.2f} {sentence_measures.MEASURES[name].label}"
        for name, measure in found.items()
    )
    return f"The references themselves, of a hundred: {scores}."


def _set_up(grid: Grid, out: Path) -> dict[str, object]:
    """Returns what the page says of model and training, by the template's places."""
    base = next(run for run in grid.runs(out, out) if run.cell == f"29k_{BASE}")
    config = base.resolved()  # finished or not: what is described is the grid
    model, training = config["model"], config["training"]
    source = model["sources"]["source"]
    few = grid.cells.get(f"4k_{BASE}", {}).get("training.num_steps", training["num_steps"])
    return {
        "encoder": source["encoder"]["hidden_dim"],
        "decoder": model["decoder"]["hidden_dim"],
        "embedding": source["input"]["embedding_dim"],
        "num_steps": f"{training['num_steps']:,}",
        "batch_size": config["data"]["batch_size"],
        "few_steps": f"{few:,}",
        "combined": VARIANTS["combined"].label,
        "other_size": _other_size(grid, out),
    }


def _other_size(grid: Grid, out: Path) -> str:
    """Says where the comparison is at the papers' size, or that nobody has run it."""
    if grid.name != NAME:
        return ""
    other = Path(f"{FULL_NAME}.md")
    if (out / other).exists():
        return f"At the order of size of the papers: [{other.stem}]({other})."
    return templates.fill(
        "coverage_vs_supervised_size",
        embedding=FULL["model.sources.source.input.embedding_dim"],
        decoder=FULL["model.decoder.hidden_dim"],
        num_steps=f"{FULL['training.num_steps']:,}",
        batch_size=FULL["data.batch_size"],
    )


def _tables(found: measure_tables.Found, runs: Sequence[GridRun], least: str) -> list[str]:
    labels = _labels()
    lines = [
        _plain_table(found, runs), "",
        measure_tables.overview(found, labels, TRANSLATION), "",
        least, "",
        measure_tables.overview(found, labels, ALIGNMENT), "",
        measure_tables.overview(found, labels, COVERAGE), "",
        measure_tables.LEGEND, "",
    ]  # fmt: skip
    for measure in ("bleu", "aer"):
        if all(measure in run for run in found[BASE]):
            lines += [measure_tables.differences(found, labels, measure), ""]
    lines += ["What papers claim, here:", "", claims_table(found, labels, CLAIMS), ""]
    return [*lines, measure_tables.contrasts(found, "what else", CONTRASTS, ("bleu", "aer")), ""]


def _teachers(path: Path, condition: str) -> list[str]:
    """Returns a table of the aligners' own error rates (AER), or nothing if not measured."""
    prefix = f"{condition}_"
    rows = [
        [name.removeprefix(prefix), *(f"{score:.1f}" for score in scores.values())]
        for name, scores in (read_json(path, {str: {str: float}}) or {}).items()
        if name.startswith(prefix)
    ]
    headings = ["AER of the aligner", "forward", "reverse", SYMMETRIZATION]
    return [tables.table(headings, rows), ""] if rows else []


def _plain_table(found: measure_tables.Found, runs: Sequence[GridRun]) -> str:
    """Returns a table of measures without counts by sentence: size, perplexity, entropy."""
    rows = []
    for name in found:
        of_cell = [run for run in runs if run.cell.partition("_")[2] == name]
        results = [run.scores() for run in of_cell]
        rows.append([
            VARIANTS[name].label, VARIANTS[name].source,
            f"{of_cell[0].facts()['num_parameters']:,}",
            *(tables.spread([result.get(metric) for result in results])
              for metric in ("perplexity", "length_ratio", "attention_entropy")),
        ])  # fmt: skip
    headings = ["system", "from", "parameters", "perplexity", "length ratio", "attention entropy"]
    return tables.table(headings, rows)


def _plots(
    folder: Path, condition: str, found: measure_tables.Found, runs: Sequence[GridRun]
) -> list[tuple[Path, str, Callable[[str], Figure]]]:
    """Lists the plots of a condition for which there is data: (path, caption, title -> figure)."""
    plots: list[tuple[Path, str, Callable[[str], Figure]]] = []
    if all("aer" in run for measured in found.values() for run in measured):
        draw = functools.partial(_tradeoff, found)
        plots.append((folder / f"{condition}.png", "BLEU over AER", draw))
    if all("perplexity" in run.record().curves for run in runs):
        draw = functools.partial(_curves, found, runs)
        plots.append((folder / f"{condition}_curves.png", "Perplexity over updates", draw))
    return plots


def _curves(found: measure_tables.Found, runs: Sequence[GridRun], title: str) -> Figure:
    """Plots validation perplexity over steps, with panels for coverage and for supervision."""
    panels: dict[str, dict[str, tuple]] = {}
    for name in found:
        of_cell = [run for run in runs if run.cell.partition("_")[2] == name]
        variant, curve = VARIANTS[name], mean_curve(of_cell, "perplexity", "validation")
        # The base is drawn in every panel, to be compared with.
        kinds = PANELS.values() if name == BASE else (PANELS[variant.kind],)
        for kind in dict.fromkeys(kinds):
            panels.setdefault(kind, {})[variant.label] = curve
    return system_curves(panels, "validation perplexity", title)


def _tradeoff(found: measure_tables.Found, title: str) -> Figure:
    points = {}
    for name, measured in found.items():
        aer, bleu = (
            seeds.seed_mean([run[measure] for run in measured]) for measure in ("aer", "bleu")
        )
        points[VARIANTS[name].label] = Point(
            aer.mean, bleu.mean, _known(aer.deviation), _known(bleu.deviation),
            VARIANTS[name].kind or "neither",
        )  # fmt: skip
    return tradeoff(points, "AER of attention (%), lower is better", "BLEU", title)


def _known(value: float) -> float:
    return 0.0 if np.isnan(value) else value


def _sentences_page(runs: Sequence[GridRun]) -> str:
    lines = []
    for condition, described in CONDITIONS.items():
        chosen = {
            run.cell.partition("_")[2]: run
            for run in runs
            if _condition(run) == condition and run.seed == 0
        }
        if len(chosen) < 2:
            continue
        texts = kept_lines(runs[0].shared(disagreement.TEXTS))
        outputs = {name: run.lines(disagreement.OUTPUTS) for name, run in chosen.items()}
        counts = {
            name: sentence_measures.of_run(run)["bleu"].counts
            for name, run in chosen.items()
        }
        shown = disagreement.page(texts, outputs, counts, _labels())
        lines += [f"## {described.label}", "", *shown]
    return templates.fill("differing_sentences", sentences=section(lines))


def _condition(run: GridRun) -> str:
    return run.cell.partition("_")[0]


def _of_condition(found: measure_tables.Found, condition: str) -> measure_tables.Found:
    prefix = f"{condition}_"
    return {
        cell.removeprefix(prefix): measured
        for cell, measured in found.items()
        if cell.startswith(prefix)
    }


def _labels() -> dict[str, str]:
    return {name: variant.label for name, variant in VARIANTS.items()}


if __name__ == "__main__":
    program.run(USAGE, make_grid, write_report, make_full_grid)
