"""Attention of one output to all its sources: decoded, kept, read back and drawn."""

import numpy as np
import pytest

from attention_jax.data.pictures import Canvas
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.config_file import load_config
from attention_jax.sweeps import archive
from experiments import pyramid
from experiments.kit import sample_attention
from experiments.kit.sample_attention import SampleAttention, SourceAttention
from tests.experiments.measured import made_record
from tests.plotting.heard_data import heard
from tests.training.untrained import untrained

SOURCES = {
    "chan2016": {"source": Canvas},
    "huang2016": {"source": list, "picture": Canvas},
    "libovicky2017": {"source": list, "other": list},
}


@pytest.fixture(autouse=True)
def in_repository(repository, monkeypatch):
    monkeypatch.chdir(repository)


def kept_in(tmp_path, sample):
    """Returns a run whose record has a sample, and one whose record has none."""
    runs = pyramid.make_grid().runs(tmp_path / "runs", tmp_path)[:2]
    kept = {sample_attention.FILE: sample_attention.arrays(sample)}
    archive.add(runs[0].records, [made_record(runs[0], arrays=kept), made_record(runs[1])])
    return runs


def check_same(found, expected):
    assert (found.title, [*found.target]) == (expected.title, [*expected.target])
    assert [*found.sources] == [*expected.sources]
    np.testing.assert_allclose(found.starts, expected.starts, rtol=1e-6)
    for name, source in expected.sources.items():
        other = found.sources[name]
        np.testing.assert_array_equal(other.weights, np.float32(source.weights))
        if not isinstance(source.seen, Canvas):
            assert [*other.seen] == [*source.seen]
            continue
        np.testing.assert_array_equal(other.seen.pixels, source.seen.pixels)
        np.testing.assert_array_equal(other.seen.boxes, source.seen.boxes)
        assert other.seen.seconds == pytest.approx(source.seen.seconds)
        np.testing.assert_allclose(other.seen.starts, source.seen.starts, rtol=1e-6)


@pytest.mark.parametrize("name", SOURCES)
def test_every_source_is_kept_with_its_attention(name, tmp_path, monkeypatch):
    config = load_config(f"configs/{name}.py:smoke")
    config.search.update(method="greedy", max_length_constant=4)
    run, task = untrained(from_config_dict(config), tmp_path / "run")
    monkeypatch.setattr(sample_attention, "task_of", lambda run: task)
    test = task.split("test")
    index = sample_attention.chosen(test)
    assert len(test.target_ids[index]) in sample_attention.LENGTHS or index == 0
    sample_attention.record(run)
    with np.load(run.directory.path / sample_attention.FILE) as file:
        kept = dict(file)
    monkeypatch.setattr(sample_attention, "arrays", lambda sample: kept)
    of_record, _ = kept_in(tmp_path, None)
    found = sample_attention.of_run(of_record)
    assert {each: type(source.seen) for each, source in found.sources.items()} == SOURCES[name]
    for each, source in found.sources.items():
        places = source.seen.boxes if isinstance(source.seen, Canvas) else source.seen
        assert len(places) == len(test.columns[each][index])
        assert source.weights.shape == (len(found.target), len(places))
        assert (source.weights >= 0).all() and source.weights.sum() > 0
    if name == "chan2016":
        assert found.title == test.targets[index]
        assert len(found.starts) == len(found.target) - 1
    else:
        assert found.title == test.sources[index] and not len(found.starts)


def test_a_sample_comes_back_from_its_record_and_is_drawn(tmp_path, numpy_rng):
    sound = heard(numpy_rng, frames=20, starts=[0.05])
    sample = SampleAttention("one two", ["one", "two", "</s>"], {
        "source": SourceAttention(numpy_rng.random((3, 20)), sound),
        "fr": SourceAttention(numpy_rng.random((3, 2)), ["un", "deux"]),
        "cs": SourceAttention(numpy_rng.random((3, 1)), ["dva"]),
    }, [0.0, 0.1])  # fmt: skip
    runs = kept_in(tmp_path, sample)
    check_same(sample_attention.of_run(runs[0]), sample)
    written = sample_attention.write_pictures({"first": runs[0], "second": runs[1]}, tmp_path)
    assert [path.name for path in written] == ["maps.png", "attention.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)
    assert sample_attention.write_pictures({"second": runs[1]}, tmp_path / "none") == []
