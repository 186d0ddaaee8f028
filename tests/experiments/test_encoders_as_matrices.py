import re
from pathlib import Path

import jax
import pytest

from attention_jax.configuration import typed
from attention_jax.evaluation import seeds
from attention_jax.models import MODELS, build_model
from experiments import encoders_as_matrices as experiment
from experiments.kit import length_tables, sentence_bleu
from experiments.kit.joined_sentences import CAVEAT, NUMBERS
from experiments.kit.sentence_bleu import SentenceBleu
from tests.experiments.measured import alignments, made_record, translations, write_records

SPLITS = ("test", *(f"joined_{number}" for number in NUMBERS))


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


@pytest.fixture
def records(tmp_path, numpy_rng, monkeypatch):
    """Records of two seeds, where every encoder but concatenation does well."""
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.seed < 2]
    records = []
    for run in runs:
        rate = 0.6 if run.cell == "concatenation" else 0.8
        measures = {"bleu": translations(numpy_rng, rate)}
        if run.cell != "fixed_vector":
            measures["aer"] = alignments(numpy_rng, rate)
        counts = measures["bleu"].counts
        sentences = SentenceBleu(counts[:, 0].astype(int), counts)
        arrays = {sentence_bleu.FILE: sentence_bleu.arrays(dict.fromkeys(SPLITS, sentences))}
        curves = {"tokens_per_second": {"train": [[0, 1, 2], [1.0, 900.0, 2000.0]]}}
        records.append(made_record(run, measures, arrays=arrays, curves=curves))
    write_records(runs, records)
    return grid, runs


def num_parameters(run, vocabulary=4000):
    config = typed(MODELS.config("encoder_decoder"), run.resolved()["model"])
    model = build_model(config, vocabulary, vocabulary)
    shapes = jax.eval_shape(model.init, jax.random.key(0))
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


def test_models_have_the_same_number_of_parameters_within_a_tenth():
    runs = [run for run in experiment.make_grid().runs(Path(), Path()) if run.seed == 0]
    counts = {run.cell: num_parameters(run) for run in runs}
    for cell, count in counts.items():
        assert abs(count / counts[experiment.BASE] - 1) < 0.1, cell


def test_systems_differ_in_their_encoder_alone():
    configs = {
        run.cell: run.resolved()
        for run in experiment.make_grid().runs(Path(), Path())
        if run.seed == 0
    }
    sources = {cell: config["model"].pop("sources") for cell, config in configs.items()}
    names = {cell: source["source"]["encoder"]["name"] for cell, source in sources.items()}
    assert names.pop("fixed_vector") == "recurrent"
    assert all(cell == name for cell, name in names.items())
    attention = configs["fixed_vector"]["model"].pop("attention")
    assert attention["name"] == "none" and attention["conditioning"] == "every_step"
    for cell, config in configs.items():
        if cell != "fixed_vector":
            assert config == configs[experiment.BASE]


def test_write_report_has_a_row_for_every_encoder(records, tmp_path):
    grid, runs = records
    page, *plots = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert f"Only {len(runs)} of" in text and all(plot.exists() for plot in plots)
    rows = {line.split(" | ")[0].strip("| "): line for line in text.splitlines()
            if line.endswith("| 900 | 1,234 |")}  # fmt: skip
    assert set(rows) == {system.label for system in experiment.SYSTEMS.values()}
    assert "| – |" in rows["bidirectional GRU, one vector"]  # no alignment without attention
    differences = re.search(r"BLEU against bidirectional GRU.*?\n\n", text, re.DOTALL)[0]
    assert re.search(r"concatenation \| -\d", differences)
    assert text.count(CAVEAT) == 1 and CAVEAT in text.split("length, joined")[1]
    assert text.count("## BLEU by source length") == len(length_tables.LENGTHS) == len(plots)
