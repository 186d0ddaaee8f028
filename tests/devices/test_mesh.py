"""Meshes: sizes that fit the devices, in the order in which they are used."""

import numpy as np
import pytest

from attention_jax.devices.batch_placement import share_of
from attention_jax.devices.mesh import mesh_sizes
from attention_jax.errors import ConfigError


def sizes_of(number, data=-1, fsdp=1, tensor=1):
    return mesh_sizes(number, (data, fsdp, tensor))


def processes_of(number, processes, tensor):
    """Which process each device is of, where these have equally many, one after the other."""
    return np.repeat(np.arange(processes), number // processes).reshape(-1, tensor)


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [
        ({}, (8, 1, 1)),
        ({"fsdp": 2}, (4, 2, 1)),
        ({"data": 1, "fsdp": -1}, (1, 8, 1)),
        ({"data": 2, "fsdp": 2, "tensor": 2}, (2, 2, 2)),
        ({"data": 2, "tensor": -1}, (2, 1, 4)),
    ],
)
def test_the_rest_goes_to_one_axis(sizes, shape):
    assert sizes_of(8, **sizes) == shape


@pytest.mark.parametrize(
    ("sizes", "words"),
    [
        ({"data": 2, "fsdp": 2}, "multiply to the number of devices (8), found data 2 x fsdp 2 x"),
        ({"fsdp": 3}, "divide the number of devices (8), found data rest x fsdp 3 x tensor 1"),
        ({"data": 16}, "multiply to the number of devices (8), found data 16 x"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(sizes, words):
    with pytest.raises(ConfigError) as error:
        sizes_of(8, **sizes)
    assert words in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("processes", "tensor", "shares"),
    [
        (1, 1, [(0, 1)]),
        (2, 1, [(0, 2), (1, 2)]),
        (2, 2, [(0, 2), (1, 2)]),
        (4, 4, [(0, 2), (0, 2), (1, 2), (1, 2)]),  # two hold a model together, and the same rows
        (2, 8, [(0, 1), (0, 1)]),
    ],
)
def test_process_share_is_that_of_its_rows(processes, tensor, shares):
    grid = processes_of(8, processes, tensor)
    assert [share_of(process, grid) for process in range(processes)] == shares


def test_process_shares_that_overlap_are_refused():
    grid = processes_of(6, 2, 2)
    with pytest.raises(ConfigError, match="config.sharding.tensor: .* found 2 on 2 processes of 3"):
        share_of(0, grid)
