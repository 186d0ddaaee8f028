"""Several sources against each alone: the systems of the grid, and the page of records."""

import pytest

from attention_jax.evaluation import seeds
from attention_jax.models import build_model
from attention_jax.runs.config import from_config_dict
from experiments import several_sources as experiment
from tests.experiments.measured import (
    alignments,
    made_record,
    sample_of,
    translations,
    write_records,
)


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def configs(tmp_path, smoke=False):
    runs = experiment.make_grid(smoke).runs(tmp_path, tmp_path)
    return {run.cell: from_config_dict(run.resolved()) for run in runs if run.seed == 0}


@pytest.mark.parametrize("smoke", [False, True])
def test_systems_differ_in_what_they_read_of_the_same_data(smoke, tmp_path):
    for cell, config in configs(tmp_path, smoke).items():
        model = build_model(config.model, 50, 60)
        further = config.data.further_sources
        assert len(further) == 1
        read = {name for name in ("source", *further) if name in model.fields}
        assert read == ({"source"} if cell in experiment.ALONE else {"source", *further})
        assert "alignment" in model.provides
        if not smoke:
            languages = {config.data.source_language, *further}
            assert languages == {"en", "fr"} and config.data.target_language == "de"
            assert (cell == "french") == (config.data.source_language == "fr")
            assert bool(config.data.shuffled_sources) == (cell == experiment.CONTROL)


def test_the_page_compares_with_the_better_source_alone(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.seed < 2]
    rates = {"french": 0.7, "english": 0.6, experiment.CONTROL: 0.6}
    records = []
    for run in runs:
        measures = {"bleu": translations(numpy_rng, rates.get(run.cell, 0.8))}
        if run.cell != "french":
            measures["aer"] = alignments(numpy_rng, 0.7)
        records.append(made_record(run, measures, arrays=sample_of("source", "fr")))
    write_records(runs, records)
    page, picture = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"## Attention to both sources\n\n![maps]({grid.name}/maps.png)" in text
    assert f"Only {len(runs)} of" in text and "BLEU against French" in text
    assert "BLEU against both, hierarchical, French of other pictures" in text
    for system in experiment.systems().values():
        assert f"| {system.label} | 2 |" in text
    (row,) = [line for line in text.splitlines() if line.startswith("| French | 2 |")]
    assert "| – |" in row  # no links between French and German
