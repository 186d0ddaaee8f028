"""The measurement of local attention, at a tiny size; no time is judged."""

from types import SimpleNamespace

import pytest

from attention_jax.errors import UserError
from experiments.benchmarks.speed import local_attention


def test_measure_covers_every_mechanism_and_length(monkeypatch):
    monkeypatch.setattr(local_attention, "DEPTH", 8)
    monkeypatch.setattr(local_attention, "BATCH", 2)
    monkeypatch.setitem(
        local_attention.CHOSEN, "bahdanau", {"name": "bahdanau", "attention_dim": 8}
    )
    results = local_attention.measure((24, 32), (1, 2), rounds=1)
    assert set(results["microseconds"]) == set(local_attention.CHOSEN)
    assert all(len(values) == 2 for values in results["microseconds"].values())
    text = local_attention.page(results)
    assert "| 24 |" in text and "local_p" in text
    assert "| temporary MiB of 2 queries, 32 positions | 0.0 |" in text
    assert results["hardware"]["cpu"] in text


@pytest.fixture
def written_to(monkeypatch):
    def write_to(path):
        flags = SimpleNamespace(FLAGS=SimpleNamespace(out=str(path)))
        monkeypatch.setattr(local_attention, "flags", flags)

    return write_to


def test_a_folder_that_cannot_be_written_is_told_before_measuring(
    written_to, tmp_path, monkeypatch
):
    (tmp_path / "file").write_text("")
    written_to(tmp_path / "file")
    monkeypatch.setattr(local_attention, "measure", lambda *_: pytest.fail("measured"))
    with pytest.raises(UserError, match="cannot be written"):
        local_attention.main()


def test_main_writes_results_a_page_and_a_plot(written_to, tmp_path, monkeypatch):
    names = dict.fromkeys(local_attention.CHOSEN, [1.0, 2.0])
    results = {"command": "python", "commit": None, "time": "now", "device": "cpu",
               "hardware": {"cpu": "abacus", "cores": 2}, "jax": "1", "rounds": 1, "batch": 2,
               "depth": 8,
               "lengths": [24, 32], "microseconds": names,
               "slope_ns_per_slot": dict.fromkeys(names, 1.0), "queries": 4,
               "temporaries_mib": dict.fromkeys(names, 3.0)}  # fmt: skip
    monkeypatch.setattr(local_attention, "measure", lambda *_: results)
    written_to(tmp_path / "new")
    local_attention.main()
    assert sorted(path.suffix for path in (tmp_path / "new").iterdir()) == [".json", ".md", ".png"]
    (tmp_path / "new" / "local_attention.json").unlink()
    (tmp_path / "new" / "local_attention.json").mkdir()
    with pytest.raises(UserError, match="expected to read results"):
        local_attention.main()
