"""The main job in small: it trains, learns, and leaves a complete run directory."""

import json

import pytest

from tests.smoke_runs import smoke_run


@pytest.fixture(scope="module")
def workdir():
    """The run of the smoke config."""
    directory, result = smoke_run()
    assert result.returncode == 0, result.stderr
    return directory


def test_smoke_run_learns_its_task(workdir):
    results = json.loads((workdir / "results.json").read_text())
    assert results["test"]["accuracy"] > 0.98
    assert results["test"]["bleu"] > 95.0
    assert results["test"]["perplexity"] < 1.1


def test_smoke_run_learns_a_monotone_alignment(workdir):
    lines = (workdir / "alignments.test.txt").read_text().splitlines()
    links = [tuple(map(int, link.split("-"))) for line in lines for link in line.split()]
    assert sum(source == target for source, target in links) > 0.8 * len(links)


def test_smoke_run_writes_every_file_of_a_run(workdir):
    names = {
        "config.json", "run.json", "metrics.jsonl", "results.json", "checkpoints", "vocab",
        "predictions.test.txt", "alignments.test.txt", "plots", "viewer.test.html",
    }  # fmt: skip
    assert names <= {path.name for path in workdir.iterdir()}
    plots = {path.name: path.read_bytes() for path in (workdir / "plots").iterdir()}
    kinds = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    assert plots.keys() == {
        *("attention.test.png", "attention.test.svg"),
        *("learning_curves.png", "learning_curves.pdf"),
    }
    for name, found in plots.items():
        assert found.startswith(kinds[name.rpartition(".")[2]])


def test_smoke_run_tells_how_it_was_made(workdir):
    facts = json.loads((workdir / "run.json").read_text())
    assert "-m launch.train --config=configs/quickstart.py:smoke" in facts["command"]
    assert {"seed", "data", "versions", "hardware", "started", "finished", "commit"} <= set(facts)
    assert facts["versions"]["jax"] and facts["hardware"]["devices"]
    assert len(facts["data"]) == 64 and facts["evaluations"]["test"]["search"]["method"] == "beam"


def test_smoke_run_shows_progress(workdir):
    _, result = smoke_run()
    assert "tokens/s" in result.stderr and "left" in result.stderr
    assert "validation" in result.stderr
    assert "test " in result.stdout and str(workdir) in result.stdout
    assert "WARNING" not in result.stderr and "Warning" not in result.stderr


def test_smoke_run_logs_numbers_only(workdir):
    lines = [json.loads(line) for line in (workdir / "metrics.jsonl").read_text().splitlines()]
    train = [line for line in lines if line["split"] == "train"]
    assert [line["step"] for line in train] == list(range(50, 401, 50))
    assert train[-1]["loss"] < 0.1 * train[0]["loss"]
    assert all(isinstance(value, int | float) for line in train for name, value in line.items()
               if name != "split")  # fmt: skip
    results = json.loads((workdir / "results.json").read_text())
    assert all(isinstance(value, int | float) for value in results["test"].values())
