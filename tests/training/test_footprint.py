"""The real step compiled for simulated devices, checked against arithmetic on its parameters."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from attention_jax.data.buckets import Bucket
from attention_jax.devices.ahead_of_time.targets import parse_target
from attention_jax.training.footprint import DoesNotFit, Footprint, most_demanding, require_fit
from attention_jax.training.footprint_report import fits_line

PROGRAM = """
import dataclasses, json
from attention_jax.training import footprint
from attention_jax.devices.ahead_of_time import targets
from attention_jax.runs.config import from_config_dict
from attention_jax.devices.config import ShardingConfig
from configs import quickstart

values = quickstart.get_config("smoke")
values.data.num_buckets = 1
values.training.averaging = {"name": "ema"}
smoke = from_config_dict(values)
devices = targets.simulated_devices(4)
with footprint.vocabularies(None) as directory:
    for sharding in (ShardingConfig("shard_map"), ShardingConfig(data=1, fsdp=4)):
        config = dataclasses.replace(smoke, sharding=sharding)
        print(json.dumps(dataclasses.asdict(footprint.measure(config, directory, devices))))
"""


@pytest.fixture(scope="module")
def measured(repository):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=repository, capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_copies_on_every_device_are_whole_and_reduced_once(measured):
    found = measured[0]
    size = 4 * found["parameters"]
    assert found["mesh"] == {"data": 4, "fsdp": 1, "tensor": 1}
    assert found["state"]["params"] == found["state"]["average"] == found["gradients"] == size
    assert 2 * size <= found["state"]["optimizer"] < 2 * size + 64  # Adam's moments, and a counter
    assert found["shape"][0] == 32  # rows of the config's batch
    # Gradients and a few scalars are reduced, each device sending 2 x 3/4 of them.
    reduced = [each for each in found["exchanges"] if each["kind"] == "all-reduce"]
    assert sum(each["result_bytes"] for each in reduced) == pytest.approx(size, rel=0.02)
    assert sum(each["link_bytes"] for each in reduced) == pytest.approx(1.5 * size, rel=0.02)
    (expected,) = found["expected"]
    assert expected["link_bytes"] == pytest.approx(1.5 * size)


def test_parameters_split_over_four_devices_take_about_a_quarter(measured):
    copied, split = measured
    for part in ("params", "optimizer", "average"):
        assert split["state"][part] < 0.45 * copied["state"][part]  # small ones stay whole
    kinds = {(each["kind"], tuple(each["axes"])) for each in split["exchanges"]}
    assert ("all-gather", ("fsdp",)) in kinds
    assert split["temporaries"] > 0


def test_the_shape_with_most_to_attend_is_taken():
    shapes = (10, 10, 8), (9, 12, 8), (50, 50, 1)
    buckets = [Bucket(s, t, rows, np.arange(2)) for s, t, rows in shapes]
    assert most_demanding(buckets) is buckets[2]
    assert most_demanding(buckets[:2]) is buckets[1]


def test_what_does_not_fit_is_said():
    state = {"params": 2**30, "optimizer": 2**30, "average": 0, "rest": 0}
    found = Footprint({}, (1, 1, 1), 1, state, 2**29, 0, 2**30, 0, [], [])
    require_fit(found, parse_target("v5e:2x2"))
    require_fit(found, parse_target("cpu:4"))
    assert fits_line(found, parse_target("v5e:2x2")) == "fits: 3,072 of 15,259 MiB"  # 16 GB
    assert fits_line(found, parse_target("cpu:4")) == "needs 3,072 MiB of each device"
    with pytest.raises(DoesNotFit, match="needs 3 GiB on each device, which has 2.5; "):
        require_fit(found, parse_target("cpu:4", memory_gib=2.5))
