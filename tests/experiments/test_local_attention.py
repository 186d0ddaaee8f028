"""The measurement of local attention, at a tiny size; no time is judged."""

from experiments.speed import local_attention


def test_measure_covers_every_mechanism_and_length(monkeypatch):
    monkeypatch.setattr(local_attention, "DEPTH", 8)
    monkeypatch.setattr(local_attention, "BATCH", 2)
    monkeypatch.setitem(
        local_attention.MECHANISMS, "bahdanau", {"name": "bahdanau", "attention_dim": 8}
    )
    results = local_attention.measure((24, 32), (1, 2), rounds=1)
    assert set(results["microseconds"]) == set(local_attention.MECHANISMS)
    assert all(len(values) == 2 for values in results["microseconds"].values())
    text = local_attention.page(results)
    assert "| 24 |" in text and "local_p" in text
