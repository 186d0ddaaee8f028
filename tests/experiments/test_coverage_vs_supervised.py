import json
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from attention_jax.evaluation import seeds
from attention_jax.models import build_model
from attention_jax.runs.config import from_config_dict
from attention_jax.sweeps import tables
from experiments import coverage_vs_supervised as experiment
from experiments.kit import disagreement, sentence_measures
from experiments.kit import dropped_word_counts as untranslated_counts
from experiments.kit.alignment_variants import BASE, CONDITIONS, VARIANTS
from experiments.kit.training_curves import mean_curve
from tests.experiments.measured import (
    alignments,
    characters,
    made_record,
    shares,
    translations,
    write_records,
)

# Those of a record.
MEASURES = {*experiment.TRANSLATION, *experiment.ALIGNMENT, *experiment.COVERAGE} - {
    untranslated_counts.MEASURE
}


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


@pytest.fixture
def records(tmp_path, numpy_rng, monkeypatch):
    """Records of some runs, where supervision aligns better and nothing translates better."""
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    chosen = [f"29k_{variant}" for variant in (BASE, "neural", "ce_hmm")]
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.cell in chosen]
    curves = {"perplexity": {"validation": [[100, 200], [10.0, 5.0]]}}
    made = []
    for run in runs:
        rate = 0.9 if run.cell.endswith("hmm") else 0.6
        measures = {name: shares(numpy_rng, name, 0.3) for name in sorted(MEASURES)}
        measures["bleu"] = translations(numpy_rng, 0.7)
        measures["chrf"] = characters(numpy_rng)
        measures["aer"] = measures["saer"] = alignments(numpy_rng, rate)
        made.append(made_record(run, measures, curves=curves))
    write_records(runs, made)
    return grid, runs


def test_every_variant_runs_in_every_condition():
    grid = experiment.make_grid()
    assert len(grid.cells) == len(VARIANTS) * len(CONDITIONS)
    configs = [run.resolved() for run in grid.runs(Path(), Path()) if run.seed == 0]
    texts = {json.dumps(config, sort_keys=True) for config in configs}
    assert len(texts) == len(configs)


def test_every_variant_of_the_full_size_is_larger_and_can_be_built():
    """Models that differ in objectives alone are built once."""
    small, full = ({run.cell: run.resolved() for run in grid.runs(Path(), Path()) if not run.seed}
                   for grid in (experiment.make_grid(), experiment.make_full_grid()))  # fmt: skip
    assert full.keys() == small.keys()
    for cell, values in full.items():
        little, much = small[cell]["training"]["num_steps"], values["training"]["num_steps"]
        assert (values["data"]["batch_size"], much) == (128, {2000: 8000, 1000: 2000}[little])
        objectives = (config["objectives"].items() for config in (small[cell], values))
        for (name, term), (_, of_full) in zip(*objectives, strict=True):
            moved = {500: 1000}
            for when in ("start_steps", "warmup_steps"):
                step = term["schedule"][when]
                assert of_full["schedule"][when] == moved.get(step, step), name
    models = {json.dumps(values["model"], sort_keys=True): values for values in full.values()}
    assert len(models) == 10  # the attentions, two heads, global fertility, the two directions
    for values in models.values():
        build = build_model(from_config_dict(values).model, 8000, 8000).init
        shapes = jax.eval_shape(build, jax.random.key(0))
        sizes = {size for leaf in jax.tree.leaves(shapes) for size in leaf.shape}
        assert {256, 512} <= sizes


def test_full_size_has_records_of_its_own():
    grids = (experiment.make_grid(), experiment.make_full_grid())
    runs, full = (grid.runs(Path("runs"), Path("out")) for grid in grids)
    assert len(runs) == len(full) == 120
    assert not {run.records for run in runs} & {run.records for run in full}
    assert not {run.workdir for run in runs} & {run.workdir for run in full}
    assert runs[0].arguments()[0][2] == full[0].arguments()[0][2]  # one config


def test_page_says_whether_the_full_size_was_run(records, tmp_path):
    grid, runs = records
    text = experiment.write_report(grid, runs, tmp_path)[0].read_text()
    assert "was not run, because no GPU was at hand" in text
    (tmp_path / f"{experiment.FULL_NAME}.md").write_text("There.\n")
    text = experiment.write_report(grid, runs, tmp_path)[0].read_text()
    assert "not run" not in text and f"({experiment.FULL_NAME}.md)" in text


def test_write_report_compares_with_the_base_and_judges_claims(records, tmp_path):
    grid, runs = records
    page, sentences, plot, curves = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert f"Only 9 of {len(grid.cells) * 3} runs" in text
    assert "4,000 training pairs\n" not in text
    (held,) = [line for line in text.splitlines() if "supervision aligns better" in line]
    assert held.endswith("| held |")
    for image in (plot, curves):
        assert image.read_bytes().startswith(b"\x89PNG")
        assert f"({image.relative_to(tmp_path)})" in text
    assert "29k\\_neural target" in sentences.read_text()


def test_a_grid_of_which_few_pairs_are_run_first_is_described_by_its_base(
    records, tmp_path, numpy_rng
):
    grid, runs = records
    small = next(run for run in grid.runs(tmp_path / "runs", tmp_path) if run.cell == "4k_base")
    measures = {name: shares(numpy_rng, name, 0.3) for name in sorted(MEASURES)}
    measures |= {"bleu": translations(numpy_rng, 0.7), "chrf": characters(numpy_rng)}
    measures["aer"] = measures["saer"] = alignments(numpy_rng, 0.6)
    write_records([small], [made_record(small, measures)])
    text = experiment.write_report(grid, [small, *runs], tmp_path)[0].read_text()
    assert "2,000 updates of 64 sentences (1,000 updates with 4,000 pairs)" in text


def test_write_report_shows_teachers_and_a_reading_where_there_are_some(records, tmp_path):
    grid, runs = records
    folder = tmp_path / grid.name
    scores = {"29k_hmm": {"forward": 11.11, "reverse": 12.0, "symmetrized": 7.0},
              "4k_hmm": {"forward": 33.33, "reverse": 12.0, "symmetrized": 7.0}}  # fmt: skip
    (folder / experiment.TEACHERS).write_text(json.dumps(scores))
    (folder / "reading.md").write_text("What this means.\n")
    text = experiment.write_report(grid, runs, tmp_path)[0].read_text()
    assert "| hmm | 11.1 | 12.0 | 7.0 |" in text and "33.3" not in text
    assert "## Reading\n\nWhat this means.\n" in text


def test_words_that_an_aligner_misses_are_tested_like_any_measure(records, tmp_path):
    grid, runs = records
    measured = [run for run in runs if run.cell != "29k_neural"]
    few, many = [(1, 10)] * 80, [(4, 10)] * 80
    counts = {run.name: many if run.cell.endswith("hmm") else few for run in measured}
    path = tmp_path / grid.name / untranslated_counts.FILE
    _, outputs = disagreement.texts(runs)
    untranslated_counts.save(path, {disagreement.REFERENCE: few, **counts}, outputs)
    text = experiment.write_report(grid, runs, tmp_path)[0].read_text()
    _, table = text.split(" dropped source words ↓ |")
    rows = dict(line[2:].split(" | ", 1) for line in table.splitlines()[2:5])
    assert rows["supervised, CE, hmm"].endswith("| 40.00 ± 0.00 ** |")
    assert rows["neural coverage"].endswith(f"| {tables.NOTHING} |")
    (least,) = [line for line in text.splitlines() if line.startswith("The references themselves")]
    assert least.endswith("repeated bigrams, 10.00 dropped source words.")


def test_gains_of_two_conditions_are_compared(records, tmp_path, numpy_rng):
    grid, runs = records
    small = [run for run in grid.runs(tmp_path / "runs", tmp_path)
             if run.cell in ("4k_base", "4k_neural")]  # fmt: skip
    made = []
    for run in small:
        rate = 0.8 if run.cell.endswith("neural") else 0.5
        measures = {name: shares(numpy_rng, name, 0.3) for name in sorted(MEASURES)}
        measures["bleu"] = translations(numpy_rng, rate)
        measures["chrf"] = characters(numpy_rng)
        measures["aer"] = measures["saer"] = alignments(numpy_rng, 0.6)
        made.append(made_record(run, measures))
    write_records(small, made)
    text = experiment.write_report(grid, [*runs, *small], tmp_path)[0].read_text()
    _, section = text.split("## Does less text make them matter more?")
    bleu, aer = [line for line in section.splitlines() if line.startswith("| neural coverage |")]
    assert float(bleu.split(" | ")[3]) > 20 and "< 0.02" in bleu
    assert abs(float(aer.split(" | ")[3])) < 10


def test_mean_curve_refuses_other_steps(records):
    _, runs = records
    steps, values = mean_curve(runs[:2], "perplexity", "validation")
    assert steps.tolist() == [100, 200] and values.tolist() == [10.0, 5.0]
    curves = {"perplexity": {"validation": [[7], [1.0]]}}
    write_records(runs, [made_record(runs[0], curves=curves)])
    with pytest.raises(ValueError, match="at the same steps"):
        mean_curve(runs[:2], "perplexity", "validation")



def test_smoke_program_trains_measures_and_tabulates(repository, python_environment, tmp_path):
    command = [sys.executable, "-m", f"experiments.{experiment.NAME}", "--smoke",
               "--only=29k_penalty", f"--runs={tmp_path}"]  # fmt: skip
    done = subprocess.run(
        command, cwd=repository, env=python_environment, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    grid = experiment.make_grid(smoke=True)
    runs = [run for run in grid.runs(tmp_path, tmp_path / "smoke_results") if run.is_finished()]
    assert [run.cell for run in runs] == ["29k_penalty"]
    for run in runs:
        measures = sentence_measures.of_run(run)
        assert MEASURES - {*experiment.ALIGNMENT} == measures.keys()
        bleu = seeds.corpus_score(measures["bleu"])
        assert bleu == pytest.approx(run.results()["test"]["bleu"], abs=1e-6)
        outputs = run.lines(disagreement.OUTPUTS)
        assert len(outputs) == len(measures["bleu"].counts)
    page = (tmp_path / "smoke_results" / f"{grid.name}.md").read_text()
    assert "Only 1 of 3 runs" in page
