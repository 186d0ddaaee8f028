"""The measurement of what each kind of attention costs, at a tiny size; no time is judged."""

import dataclasses
from types import SimpleNamespace

import pytest

from attention_jax.errors import UserError
from experiments.benchmarks.speed import mechanisms

SMALL = {
    "model.decoder.hidden_dim": 8, "model.decoder.attentional_dim": 8,
    "model.target_embedding_dim": 8, "model.sources.source.encoder.hidden_dim": 8,
}  # fmt: skip


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def test_every_system_is_measured_at_every_length(monkeypatch):
    for name in ("ROWS", "ROUNDS", "STEPS"):
        monkeypatch.setattr(mechanisms, name, 2)
    known = {**mechanisms.systems(), **mechanisms.combinations()}
    some = {
        name: dataclasses.replace(known[name], overrides={**known[name].overrides, **SMALL})
        for name in ("soft", "local_m", "pyramid_1", "alone", "flat")
    }
    for name in ("alone", "flat"):
        del some[name].overrides["model.decoder.attentional_dim"]
    results = mechanisms.measure(some, (6,))
    for system in results["systems"].values():
        ((one, other),) = system["milliseconds"]
        assert one > 0 and other > 0 and system["temporaries_mib"][0] > 0
    text = mechanisms.page(results)
    assert "| soft | 1.00 |" in text and "| local, monotonic |" in text
    assert "| one source | 1.00 |" in text and "| two, flat |" in text
    assert results["hardware"]["cpu"] in text


def test_ratios_are_those_within_a_round():
    """A round on a slow machine slows both."""
    assert mechanisms._ratio([2.0, 20.0, 4.0], [1.0, 10.0, 2.0]) == "2.00"


def test_a_folder_that_cannot_be_written_is_told_before_measuring(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    flags = SimpleNamespace(FLAGS=SimpleNamespace(out=str(tmp_path / "file")))
    monkeypatch.setattr(mechanisms, "flags", flags)
    monkeypatch.setattr(mechanisms, "measure", lambda *_: pytest.fail("measured"))
    with pytest.raises(UserError, match="cannot be written"):
        mechanisms.main()
