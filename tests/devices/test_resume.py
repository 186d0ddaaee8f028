"""A run that changes its strategy whenever it is cut off trains as if nothing had happened."""

import dataclasses
import json

import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.devices.config import ShardingConfig
from attention_jax.errors import ConfigError
from attention_jax.plotting.curves import read_metrics
from attention_jax.runs.load import load_run
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.training.assembly import assemble
from tests.devices.turns import train_turn
from tests.simulated_devices import call_on_devices
from tests.training.tiny import tiny_config

NUM_STEPS = 4
# (last step, config.sharding); 10 rows in 2 parts are an uneven batch for all of them.
TURNS = [(2, {"data": 2, "fsdp": 4}), (NUM_STEPS, {"strategy": "shard_map"})]
FUNCTION = "tests.devices.test_resume.train_in_turns"


def config_of(sharding):
    config = tiny_config(
        num_steps=NUM_STEPS, accumulate_steps=2, log_every_steps=1, evaluate_every_steps=0,
        checkpoint_every_steps=0, evaluation={"splits": ()},
    )  # fmt: skip
    source = config.model.sources["source"]
    source = dataclasses.replace(
        source,
        input=dataclasses.replace(source.input, embedding_dim=32),
        encoder=dataclasses.replace(source.encoder, hidden_dim=32),
    )
    parts = {"sources": {"source": source}, "target_embedding_dim": 32, "embedding_dropout": 0.2}
    return dataclasses.replace(
        config,
        data=dataclasses.replace(config.data, batch_size=10),
        model=dataclasses.replace(config.model, **parts),
        sharding=typed(ShardingConfig, sharding),
    )


def train_in_turns(workdir, turns):
    """Trains in one directory; returns the losses, and what `run.json` said after every turn."""
    facts = []
    for last, sharding in turns:
        directory = train_turn(config_of(sharding), workdir, last)
        facts.append(json.loads(directory.run.read_text()))
    lines = read_metrics(directory.metrics)
    return {
        "train": [line["loss"] for line in lines if line["split"] == "train"],
        "validation": [line["nll"] for line in lines if line["split"] == "validation"],
        "facts": facts,
    }


@pytest.fixture(scope="module")
def in_turns(tmp_path_factory):
    workdir = tmp_path_factory.mktemp("turns") / "run"
    return call_on_devices(8, FUNCTION, str(workdir), TURNS), workdir


def test_changes_of_strategy_do_not_change_a_training(in_turns, tmp_path):
    found, workdir = in_turns
    expected = call_on_devices(1, FUNCTION, str(tmp_path / "run"), [(NUM_STEPS, {})])
    assert len(found["train"]) == NUM_STEPS and len(found["validation"]) == 1
    np.testing.assert_allclose(found["train"], expected["train"], rtol=1e-6)
    np.testing.assert_allclose(found["validation"], expected["validation"], rtol=1e-6)
    assert load_run(workdir).step == NUM_STEPS  # on the one device of this process


def test_run_says_what_devices_hold_and_what_saving_costs(in_turns):
    facts = in_turns[0]["facts"]
    assert [each["sharding"]["strategy"] for each in facts] == ["jit", "shard_map"]
    assert [each["sharding"]["mesh"]["fsdp"] for each in facts] == [4, 1]
    shares = [
        each["sharding"]["optimizer_bytes_per_device"] / each["sharding"]["optimizer_bytes"]
        for each in facts
    ]
    assert shares[0] < 0.5 and shares[1] == 1.0
    for each in facts:
        saving = each["saving"]
        assert saving["saves"] == 1 and 0 < saving["share_of_time"] < 1
        assert 0 < saving["stall_ms"] == saving["longest_stall_ms"]


@pytest.mark.parametrize(
    ("sharding", "words"),
    [
        ({"data": 2}, "config.sharding: expected sizes that multiply to the number of devices (1)"),
        ({"rules": [["tables", "fsdp"]]}, "config.sharding.rules[0]: expected a logical axis of"),
    ],
)
def test_sharding_that_does_not_fit_is_refused_before_training(tmp_path, sharding, words):
    with pytest.raises(ConfigError) as error:
        assemble(config_of(sharding), RunDirectory(tmp_path / "run"))
    assert str(error.value).startswith(words) and "\n" not in str(error.value)
