"""Eight simulated devices compute what one computes, by every strategy, and go on for another."""

import re

import numpy as np
import pytest

from attention_jax.devices.memory_per_device import sharding_line
from tests.devices.cases import CASES, LAYERS, NETWORKS, PARTS, STEPS, changes
from tests.simulated_devices import call_on_devices

pytestmark = pytest.mark.early

CASES_IN_PARTS = [(case, parts) for case in CASES for parts in PARTS[case]]
RESUMED_MODEL = "recurrent"  # a checkpoint knows leaves, and not what they are for
RESUMED = [case for case in CASES if 2 in PARTS[case]]
FIRST_STEP = "tests.devices.cases.first_step"


@pytest.fixture(scope="module", params=NETWORKS)
def measured(request):
    """What all cases measure, for one model after the other."""
    function = "tests.devices.cases.run_everything"
    return call_on_devices(8, function, request.param, request.param == RESUMED_MODEL)


def assert_close(found, expected, tolerance=1e-6):
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


def assert_same_step(found, case):
    for name in ("loss", "gradient"):
        assert_close(found[case][name], found["one"][name])
    assert np.abs(found["one"]["gradient"]).max() > 0.01


@pytest.mark.parametrize(("case", "parts"), CASES_IN_PARTS)
def test_devices_compute_the_loss_and_gradient_of_one(measured, case, parts):
    found, expected = (measured[str(parts)][name] for name in (case, "one"))
    # Adam divides by the gradient's size, of which rounding errors are a larger part where it is
    # small; the gradients of the second step are those of parameters that it has moved.
    for number, tolerance in zip(range(STEPS), (1e-6, 2e-6), strict=True):
        for name in ("loss", "norm", "gradient"):
            assert_close(found["steps"][number][name], expected["steps"][number][name], tolerance)
    assert np.abs(expected["steps"][0]["gradient"]).max() > 0.01
    for name in ("parameters", "average"):
        assert_close(found[name], expected[name], tolerance=2e-5)


@pytest.mark.parametrize("case", RESUMED)
def test_devices_evaluate_as_one_does(measured, case):
    assert_close(measured["nll"][case], measured["nll"]["one"])


def test_dropout_is_at_work(measured):
    first, second = (measured[parts]["one"]["steps"][0]["loss"] for parts in ("1", "2"))
    assert abs(first - second) > 1e-4  # parts draw other dropout than the whole


@pytest.mark.parametrize("measured", [RESUMED_MODEL], indirect=True)
@pytest.mark.parametrize(("old", "new"), changes(["one", *RESUMED]))
def test_checkpoint_goes_on_with_another_strategy(measured, old, new):
    found, uninterrupted = measured["resumed"][f"{old} -> {new}"], measured["2"][old]
    assert_close(found["loss"], uninterrupted["steps"][-1]["loss"])
    if new == old:
        assert found["loss"] == uninterrupted["steps"][-1]["loss"]
        assert found["parameters"] == uninterrupted["parameters"]
    else:
        assert_close(found["parameters"], uninterrupted["parameters"], tolerance=2e-5)


def test_fsdp_splits_parameters_and_moments(measured):
    sharding = measured["sharding"]
    for case, share in (("one", 1), ("data", 1), ("shard_map", 1), ("pmap", 1), ("all", 0.6),
                        ("fsdp", 0.35)):  # fmt: skip
        for kind in ("parameter", "optimizer"):
            fraction = sharding[case][f"{kind}_bytes_per_device"] / sharding[case][f"{kind}_bytes"]
            assert fraction == 1 if share == 1 else fraction < share, (case, kind, fraction)
    assert sharding["fsdp"]["mesh"] == {"data": 1, "fsdp": 8, "tensor": 1}
    assert re.fullmatch(
        r"on one device \(cpu\), which holds 0\.1 MB of parameters and 0\.\d MB of optimiser state",
        sharding_line(sharding["one"]),
    )
    assert sharding_line(sharding["fsdp"]).startswith(
        "jit on 8 x cpu, data 1 x fsdp 8 x tensor 1: a device holds 0.0 of 0.1 MB of parameters"
    )


def test_gnmt_trains_with_each_layer_on_eight_devices():
    """By the rules of its own config, which `--config.sharding.tensor=8` needs."""
    found = call_on_devices(8, FIRST_STEP, "gnmt", [LAYERS])
    assert_same_step(found, LAYERS)
    one, layers = found["one"], found[LAYERS]
    assert layers["sharding"]["mesh"] == {"data": 1, "fsdp": 1, "tensor": 8}
    sharding = layers["sharding"]["parameter_bytes_per_device"] / one["sharding"]["parameter_bytes"]
    assert 1 / 8 < sharding < 0.2  # attention and biases are whole


def test_devices_agree_as_compiled_for_users():
    """Whose programs are optimised, which those of the other tests are not."""
    found = call_on_devices(8, FIRST_STEP, "recurrent", ["all"], is_optimized=True)
    assert_same_step(found, "all")


@pytest.mark.parametrize("location", ["bahdanau2015.py:multi30k", "vaswani2017.py:base"])
def test_eight_devices_hold_an_eighth_of_a_training_each(location):
    function = "tests.devices.cases.sharding_of_config"
    sharding = call_on_devices(8, function, f"configs/{location}", 8000)
    for kind in ("parameter", "optimizer"):
        fraction = sharding[f"{kind}_bytes_per_device"] / sharding[f"{kind}_bytes"]
        assert 0.125 <= fraction < 0.128, (kind, fraction)
    assert sharding["parameter_bytes"] > 2e7
