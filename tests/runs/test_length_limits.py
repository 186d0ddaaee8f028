"""A run's own limit of outputs: from its training pairs, kept with it, for both directions."""

import dataclasses
import json

import numpy as np
import pytest

from attention_jax.data.builders.parallel import Config as ParallelConfig
from attention_jax.data.config import SubwordsConfig
from attention_jax.errors import RunDirectoryError
from attention_jax.runs.length_limits import (
    FORWARD,
    REVERSE,
    limits_of_pairs,
    record_limits,
    recorded_limits,
    with_limits,
)
from attention_jax.runs.load import load_run
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.search import SearchConfig
from attention_jax.search.training_lengths import DEFAULT, Longest
from attention_jax.training.assembly import assemble
from tests.smoke_runs import smoke_run
from tests.training.tiny import tiny_config

LIMITS = {FORWARD: Longest(30.0, 10), REVERSE: Longest(2.0, 14)}


@pytest.fixture
def directory(tmp_path):
    return RunDirectory(tmp_path)


def test_limits_are_of_either_direction():
    sources, targets = np.array([2, 6]), np.array([40, 80])
    assert limits_of_pairs(sources, targets)[FORWARD] == LIMITS[FORWARD]
    assert limits_of_pairs(targets, sources) == {
        FORWARD: DEFAULT, REVERSE: LIMITS[FORWARD],
    }  # fmt: skip


def test_what_is_recorded_is_read_again(directory):
    assert recorded_limits(directory) == {FORWARD: DEFAULT, REVERSE: DEFAULT}
    record_limits(directory, LIMITS)
    assert recorded_limits(directory) == LIMITS


@pytest.mark.parametrize(
    "found", [3, [], {}, {"forward": None, "reverse": 1}, {"forward": {"factor": "a"}}]
)
def test_something_else_in_its_place_is_one_line(directory, found):
    directory.add_to_run(longest_outputs=found)
    with pytest.raises(RunDirectoryError, match="expected a factor and a constant") as caught:
        recorded_limits(directory)
    assert "\n" not in str(caught.value)


def test_only_a_limit_that_is_left_open_follows_the_pairs():
    opened = with_limits(SearchConfig(), LIMITS)
    assert Longest.of(opened) == LIMITS[FORWARD]
    assert with_limits(opened, LIMITS) == opened
    assert Longest.of(with_limits(opened, LIMITS, REVERSE)) == LIMITS[REVERSE]
    for own in ({"max_length_factor": 1.0}, {"max_length_constant": 0}):
        assert with_limits(SearchConfig(**own), LIMITS) == SearchConfig(**own)


def test_validation_is_searched_within_the_limits(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    table = tmp_path / "text.tsv"
    lines = [f"{word}{number}\t{'long ' * 30}{number}\n" for number in range(9) for word in "abc"]
    table.write_text("".join(lines))
    tables = {f"{split}_table": str(table) for split in ("train", "validation", "test")}
    data = ParallelConfig(**tables, batch_size=16, subwords=SubwordsConfig(kind="words"))
    evaluation = {"num_validation_examples": 4}
    config = dataclasses.replace(tiny_config(evaluation=evaluation), data=data)
    parts = assemble(config, RunDirectory(tmp_path / "run"))
    assert parts.search == parts.validation._decode._config != config.search
    assert parts.search.longest(2) >= 32 > config.search.longest(2)
    # A run of an earlier version goes on as it began.
    parts = assemble(config, RunDirectory(tmp_path / "run"), begins=False)
    assert parts.search == parts.validation._decode._config == config.search


def test_a_run_is_loaded_with_its_limits(tmp_path, monkeypatch):
    run, ended = smoke_run()
    assert ended.returncode == 0, ended.stderr
    facts = json.loads((run / "run.json").read_text())
    default = {"factor": 2.0, "constant": 10}
    assert facts["longest_outputs"] == {"forward": default, "reverse": default}
    monkeypatch.setattr("attention_jax.runs.load.recorded_limits", lambda _: LIMITS)
    assert Longest.of(load_run(run).config.search) == LIMITS[FORWARD]
    own = load_run(run, {"max_length_constant": 3}).config.search
    assert Longest.of(own) == Longest(2.0, 3)
