"""Several sources against each alone: the systems of the grid, and the page of records."""

import jax
import numpy as np
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


def build(config):
    """Builds the model; all sides have one vocabulary where the config ties them."""
    return build_model(config.model, 60, 60)


@pytest.mark.parametrize("smoke", [False, True])
def test_systems_differ_in_what_they_read_of_the_same_data(smoke, tmp_path):
    for cell, config in configs(tmp_path, smoke).items():
        model = build(config)
        further = config.data.further_sources
        assert len(further) == 1
        read = {name for name in ("source", *further) if name in model.fields}
        assert read == ({"source"} if experiment.is_alone(cell) else {"source", *further})
        assert "alignment" in model.provides
        if not smoke:
            languages = {config.data.source_language, *further}
            assert languages == {"en", "fr"} and config.data.target_language == "de"
            assert cell.endswith("french") == (config.data.source_language == "fr")
            assert bool(config.data.shuffled_sources) == (cell == experiment.CONTROL)


def test_a_kind_has_one_recipe_and_each_source_alone(tmp_path):
    """So that what differs is what is read, and how; and the present cells come first."""
    found = configs(tmp_path)
    assert [*found] == [cell for kind in experiment.kinds() for cell in kind.systems]
    assert [*found][:3] == ["english", "french", "concatenated"]
    for kind in experiment.kinds():
        members = [found[cell] for cell in kind.systems]
        for one in members[1:]:
            assert one.training == members[0].training and one.optimizer == members[0].optimizer
            assert one.data.batch_size == members[0].data.batch_size
            assert one.data.subwords == members[0].data.subwords
        assert sum(map(experiment.is_alone, kind.systems)) == len(experiment.ALONE)


def test_systems_are_of_the_literature(tmp_path):
    found = {cell: config.model for cell, config in configs(tmp_path).items()}
    assert found["zoph_child_sum"].decoder.bridge == "child_sum"
    assert found["zoph_basic"].decoder.bridge == "basic"
    for cell in ("zoph_basic", "zoph_child_sum"):
        assert found[cell].attention.score.name == "local_p"
    for cell in ("zoph_english", "zoph_french"):
        assert found[cell].attention.name == "local_p" and found[cell].decoder.bridge == "copy"
    for name in ("parallel", "serial", "flat", "hierarchical"):
        assert found[f"transformer_{name}"].attention.name == found[name].attention.name == name
        assert found[f"transformer_{name}"].attention.score.name == "multi_head"
    assert found["transformer_hierarchical"].attention.over.name == "multi_head"
    assert found["transformer_merged"].decoder.name == "merged_transformer"
    assert found["transformer_english"].attention.name == "multi_head"


def test_what_reads_both_is_of_one_size_but_for_its_attention(tmp_path):
    sizes = {}
    for cell, config in configs(tmp_path).items():
        leaves = jax.tree.leaves(jax.eval_shape(build(config).init, jax.random.key(0)))
        sizes[cell] = sum(int(np.prod(leaf.shape)) for leaf in leaves)
    for kind in experiment.kinds():
        both = [sizes[cell] for cell in kind.systems if not experiment.is_alone(cell)]
        alone = [sizes[cell] for cell in kind.systems if experiment.is_alone(cell)]
        assert len(set(alone)) == 1 and alone[0] < min(both)
        assert max(both) < 1.5 * min(both), kind.label


def test_the_page_compares_with_the_better_source_alone(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.seed < 2]
    rates = {experiment.CONTROL: 0.6}
    rates |= {cell: 0.7 if cell.endswith("french") else 0.6
              for cell in grid.cells if experiment.is_alone(cell)}  # fmt: skip
    records = []
    for run in runs:
        measures = {"bleu": translations(numpy_rng, rates.get(run.cell, 0.8))}
        if not run.cell.endswith("french"):
            measures["aer"] = alignments(numpy_rng, 0.7)
        records.append(made_record(run, measures, arrays=sample_of("source", "fr")))
    write_records(runs, records)
    page, picture = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert f"## Attention to both sources\n\n![maps]({grid.name}/maps.png)" in text
    assert f"Only {len(runs)} of" in text
    assert text.count("BLEU against French") == len(experiment.kinds())
    assert text.count("BLEU against both, hierarchical, French of other pictures") == 1
    for kind in experiment.kinds():
        (section,) = [part for part in text.split("\n## ") if part.startswith(kind.label)]
        for system in kind.systems.values():
            assert f"| {system.label} | 2 |" in section
        (row,) = [line for line in section.splitlines() if line.startswith("| French | 2 |")]
        assert "| – |" in row  # no links between French and German
    assert "The Transformer: multi30k, en to de, 8,000 bpe subwords for all sides, 30" in text


def test_a_kind_without_runs_is_not_on_the_page(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.cell == "zoph_basic"]
    write_records(runs, [
        made_record(run, {"bleu": translations(numpy_rng, 0.8), "aer": alignments(numpy_rng, 0.7)})
        for run in runs
    ])  # fmt: skip
    (page,) = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert "## LSTMs with local attention" in text and "## The Transformer" not in text
    assert "BLEU against" not in text  # nothing to compare with yet
