from pathlib import Path

import jax
import pytest

from attention_jax.evaluation import seeds
from attention_jax.models import build_model
from attention_jax.runs.config import changed_fields, from_config_dict
from attention_jax.sweeps import tables
from experiments import vaswani2017_table3 as experiment
from tests.experiments.measured import made_record, translations, write_records


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def num_parameters(run):
    """Those of a run's model, with the largest vocabularies that it may have."""
    config = from_config_dict(run.resolved())
    size = config.data.subwords.size
    shapes = jax.eval_shape(build_model(config.model, size, size).init, jax.random.key(0))
    return sum(leaf.size for leaf in jax.tree.leaves(shapes))


BOTH = ("model.sources.source.encoder", "model.decoder")
CHANGES = {
    "heads_1": {"model.attention.num_heads": 1, "model.attention.head_dim": 64},
    "heads_2": {"model.attention.num_heads": 2, "model.attention.head_dim": 32},
    "heads_8": {"model.attention.num_heads": 8, "model.attention.head_dim": 8},
    "heads_16": {"model.attention.num_heads": 16, "model.attention.head_dim": 4},
    "keys_4": {"model.attention.head_dim": 4, "model.attention.head_value_dim": 16},
    "keys_8": {"model.attention.head_dim": 8, "model.attention.head_value_dim": 16},
    **{f"layers_{n}": {f"{each}.num_layers": n for each in BOTH} for n in (1, 2, 4)},
    **{
        f"depth_{n}": {
            "model.sources.source.input.embedding_dim": n, "model.target_embedding_dim": n,
            "model.attention.head_dim": n // 4, "schedule.model_depth": n,
        }
        for n in (32, 128)
    },
    **{f"width_{n}": {f"{each}.feed_forward_dim": n for each in BOTH} for n in (128, 512)},
    "dropout_0": {f"{each}.dropout": 0.0 for each in BOTH},
    "dropout_2": {f"{each}.dropout": 0.2 for each in BOTH},
    "smoothing_0": {"objectives.nll.label_smoothing": 0.0},
    "smoothing_2": {"objectives.nll.label_smoothing": 0.2},
    "learned": {f"{each}.positions": "learned" for each in BOTH},
}  # fmt: skip


def test_each_row_changes_what_it_says_and_nothing_else():
    runs = {run.cell: run for run in experiment.make_grid().runs(Path(), Path()) if not run.seed}
    base = runs.pop("base").resolved()
    found = {
        name: {path: new for path, (_, new) in changed_fields(base, run.resolved()).items()}
        for name, run in runs.items()
    }
    assert found == CHANGES


def test_rows_of_a_cost_keep_it():
    runs = {run.cell: run for run in experiment.make_grid().runs(Path(), Path()) if not run.seed}
    counts = {name: num_parameters(run) for name, run in runs.items()}
    base = counts["base"]
    assert all(count == base for name, count in counts.items() if name.startswith("heads"))
    assert counts["keys_4"] < counts["keys_8"] < base
    assert counts["layers_1"] < counts["layers_2"] < base < counts["layers_4"]
    assert counts["depth_32"] < base < counts["depth_128"]
    assert counts["width_128"] < base < counts["width_512"]
    assert counts["learned"] == base + 2 * 256 * 64
    assert counts["dropout_0"] == counts["smoothing_2"] == base
    assert len({str(run.resolved()) for run in runs.values()}) == len(experiment.rows()) == 19


def test_write_report_has_our_numbers_beside_the_papers(tmp_path, numpy_rng, monkeypatch):
    monkeypatch.setattr(seeds, "RESAMPLES", 100)
    grid = experiment.make_grid()
    runs = [run for run in grid.runs(tmp_path / "runs", tmp_path) if run.seed < 2]
    records = []
    for run in runs:
        rate = 0.5 if run.cell == "heads_1" else 0.8
        looks = [[4000, 4500], [8.0, 7.0 if run.seed else 7.4]]
        records.append(made_record(
            run, {"bleu": translations(numpy_rng, rate)}, perplexity=5.0,
            facts={"num_parameters": 2_345_678}, curves={"perplexity": {"validation": looks}},
        ))  # fmt: skip
    write_records(runs, records)
    page, plot = experiment.write_report(grid, runs, tmp_path)
    text = page.read_text()
    assert plot.exists() and f"({plot.relative_to(tmp_path)})" in text
    assert f"Only {len(runs)} of 57 runs" in text
    assert 'row "big"' in text
    rows = {line.split(" | ")[0].strip("| "): line for line in text.splitlines() if " | " in line}
    assert rows["base"].endswith("| 10.0 | 2.35 | base | 4.92 | 25.8 | 65 |")
    assert "| 50.00 ± 0.00 | 1.00 ± 0.00 |" in rows["base"]
    assert "last 500, %" in text
    assert "5.00 ± 0.00" in rows["base"]
    assert rows["(A) 1 head of 64"].endswith(f"| 1 of 512 | 5.29 | 24.9 | {tables.NOTHING} |")
    assert rows["(C) feed-forward 512"].endswith("| 4,096 | 4.75 | 26.2 | 90 |")
    assert "| < 0.0" in rows["(A) 1 head of 64"]
    assert "star" not in text and "p: of the difference in BLEU from the base" in text
