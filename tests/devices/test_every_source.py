"""Every kind of source is trained to the same bits after a stop, and to one loss by all devices."""

import functools
import json
import shutil
from unittest import mock

import numpy as np
import pytest

from attention_jax.plotting.curves import read_metrics
from attention_jax.runs.config import from_config_dict
from attention_jax.runs.config_file import load_config
from tests.devices.turns import train_turn
from tests.simulated_devices import call_on_devices

pytestmark = pytest.mark.early

SOURCES = {
    "pictures": "xu2015.py:formulas",
    "sound": "chan2016.py:smoke",
    "documents": "yang2016.py:smoke",
    "rationales": "lei2016.py:smoke",
    "two_texts": "libovicky2017.py:smoke",
    "text_and_picture": "huang2016.py:smoke",
}
STEPS, STOP = 4, 2
SHARDING = {"data": 4, "fsdp": 2, "tensor": 1}
FUNCTION = "tests.devices.test_every_source.next_steps"


def config_of(kind, **sharding):
    """The config of a kind of source, for a few steps on little data."""
    values = load_config(f"configs/{SOURCES[kind]}").to_dict()
    if kind == "pictures":  # whose config has no smoke size
        _shrink(values["model"])
        values["data"] |= {"num_formulas": 64, "max_symbols": 5}
    if kind == "sound":  # which is as good a pyramid with fewer layers to compile
        values["model"]["sources"]["source"]["encoder"]["levels"] = 1
    values["data"] |= {
        "batch_size": 16, "num_buckets": 1, "max_train_examples": 64, "eval_batch_size": 64,
    }  # fmt: skip
    values["training"] = {
        "num_steps": STEPS, "averaging": {"name": "ema", "decay": 0.5}, "log_every_steps": 1,
        "evaluate_every_steps": 0, "checkpoint_every_steps": 0,
    }  # fmt: skip
    values |= {"schedule": {"name": "constant"}, "evaluation": {"splits": ()}}
    values["sharding"] = sharding
    return from_config_dict(values)


def _shrink(model):
    """Narrows a model of pictures."""
    source = model["sources"]["source"]
    source["input"] |= {"embedding_dim": 8, "filters": 8}
    source["encoder"]["num_layers"] = 1
    model["attention"]["score"]["score"]["attention_dim"] = 8
    model["decoder"] |= {"hidden_dim": 16, "readout_dim": 8}
    model["target_embedding_dim"] = 8


def trained(kind, workdir, end=None, **sharding):
    """Trains to a step or to the end; returns what `run.json` says, and the metrics."""
    with mock.patch("attention_jax.data.builders.formulas._EVALUATION", 4):
        directory = train_turn(config_of(kind, **sharding), workdir, end)
    return json.loads(directory.run.read_text()), read_metrics(directory.metrics)


def next_steps(folder):
    """Returns what the next step of every run measures, sharded over all devices."""
    found = {}
    for kind in SOURCES:
        facts, metrics = trained(kind, f"{folder}/{kind}", STOP + 1, **SHARDING)
        assert facts["sharding"]["mesh"] == SHARDING
        found[kind] = metrics[STOP]
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Trains without interruption, each kind when it is asked for first."""
    folder = tmp_path_factory.mktemp("whole")
    return functools.cache(lambda kind: trained(kind, folder / kind))


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """Returns the directory of a training that was stopped; to be copied."""
    folder = tmp_path_factory.mktemp("stopped")

    @functools.cache
    def directory(kind):
        trained(kind, folder / kind, STOP)
        return folder / kind

    return directory


@pytest.fixture(scope="module")
def sharded(stopped, tmp_path_factory):
    # No state has to be drawn again, which takes longer to compile than a step.
    folder = tmp_path_factory.mktemp("sharded")
    for kind in SOURCES:
        shutil.copytree(stopped(kind), folder / kind)
    return call_on_devices(8, FUNCTION, str(folder))


@pytest.mark.parametrize("kind", SOURCES)
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(whole, stopped, tmp_path, kind):
    facts, metrics = whole(kind)
    resumed, again = trained(kind, shutil.copytree(stopped(kind), tmp_path / "run"))
    assert resumed["parameters"] == facts["parameters"]
    losses = [[each["loss"] for each in lines] for lines in (metrics, again)]
    assert losses[0] == losses[1] and len(losses[0]) == STEPS + 1  # a validation, of the average


@pytest.mark.parametrize("kind", SOURCES)
def test_eight_devices_compute_the_step_of_one(whole, sharded, kind):
    expected, found = whole(kind)[1][STOP], sharded[kind]
    assert expected["step"] == found["step"] == STOP + 1
    names = [name for name in expected if name == "gradient_norm" or name.startswith("loss")]
    assert {"loss", "loss/nll", "gradient_norm"} <= {*names}
    for name in names:
        np.testing.assert_allclose(found[name], expected[name], rtol=2e-6, err_msg=name)
