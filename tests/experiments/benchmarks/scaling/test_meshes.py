"""Meshes of the command line."""

import dataclasses

import pytest

from attention_jax.errors import UserError
from experiments.benchmarks.scaling.meshes import parse_mesh, with_batch_per_device, with_mesh
from tests.training.tiny import tiny_config


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("data=64", (64, 1, 1)),
        ("data=8,fsdp=4,tensor=2", (8, 4, 2)),
        ("fsdp=8", (8, 8, 1)),
        ("tensor=2, fsdp=32", (1, 32, 2)),
        ("", (64, 1, 1)),
    ],
)
def test_meshes(text, sizes):
    assert tuple(parse_mesh(text, 64).values()) == sizes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data=8", "expected sizes that multiply to 64, found data=8"),
        ("fsdp=5", "expected sizes that multiply to 64"),
        ("data", "expected sizes as in data=8,fsdp=4,tensor=2, found 'data'"),
        ("data=0", "expected sizes as in"),
        ("fdsp=8", "expected axes of data, fsdp, tensor, found 'fdsp'; did you mean fsdp"),
        ("data=8,data=8", "expected every axis once, found data twice"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(UserError, match=f"--mesh: {message}"):
        parse_mesh(text, 64)


def test_configs_get_the_mesh_and_a_batch_for_it():
    sizes = parse_mesh("fsdp=4,tensor=2", 16)
    config = with_batch_per_device(with_mesh(tiny_config(), sizes), sizes, 10)
    sharding = config.sharding
    assert (sharding.data, sharding.fsdp, sharding.tensor) == (2, 4, 2)
    assert config.data.batch_size == 80  # 2 x 4 devices share a batch

    pmap = dataclasses.replace(tiny_config(), sharding=dataclasses.replace(
        tiny_config().sharding, strategy="pmap"
    ))  # fmt: skip
    with pytest.raises(UserError, match="config.sharding.fsdp: expected 1 for strategy 'pmap'"):
        with_mesh(pmap, sizes)
