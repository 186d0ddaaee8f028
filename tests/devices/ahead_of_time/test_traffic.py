"""The formulas of communication, on parameters placed by hand."""

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from attention_jax.devices.ahead_of_time.traffic import bytes_on_link, expected_exchanges

AXES = {"data": 4, "fsdp": 8, "tensor": 2}


def placed(*spec):
    """A parameter of 64 x 16 float32, 4096 bytes, on a mesh of 64 devices that is not there."""
    mesh = AbstractMesh(tuple(AXES.values()), tuple(AXES))
    sharding = NamedSharding(mesh, PartitionSpec(*spec))
    return jax.ShapeDtypeStruct((64, 16), jnp.float32, sharding=sharding)


def found(*spec):
    """What the placement makes devices exchange: (kind, axes) -> bytes sent."""
    return {
        (each.kind, each.axes): each.link_bytes
        for each in expected_exchanges({"w": placed(*spec)}, AXES)
    }


def test_copied_parameters_are_reduced_over_all_that_splits_batches():
    assert found() == {("all-reduce", ("data", "fsdp")): pytest.approx(2 * 31 / 32 * 4096)}


def test_split_parameters_are_gathered_twice_and_their_gradient_is_scattered():
    assert found("fsdp") == {
        ("all-gather", ("fsdp",)): pytest.approx(2 * 7 / 8 * 4096),
        ("reduce-scatter", ("fsdp",)): pytest.approx(7 / 8 * 4096),
        ("all-reduce", ("data",)): pytest.approx(2 * 3 / 4 * 4096 / 8),
    }


def test_the_tensor_axis_makes_all_of_it_smaller():
    halves = {key: value / 2 for key, value in found("fsdp").items()}
    assert found("fsdp", "tensor") == pytest.approx(halves)
    assert found(None, ("tensor", "fsdp")) == pytest.approx(halves)


@pytest.mark.parametrize(
    ("kind", "sent"),
    [("all-reduce", 1500), ("all-gather", 750), ("reduce-scatter", 3000), ("all-to-all", 750)],
)
def test_bytes_of_four_devices(kind, sent):
    assert bytes_on_link(kind, 1000, 4) == sent
    assert bytes_on_link(kind, 1000, 1) == 0
