"""Names of topologies, right and wrong."""

import pytest

from attention_jax.devices.ahead_of_time.targets import devices_of, parse_target
from attention_jax.errors import UserError


@pytest.mark.parametrize(
    ("text", "slices", "devices", "gigabytes"),
    [
        ("v5e:4x4", 1, 16, 16),
        ("v5e:4x4", 4, 64, 16),
        ("v6e:2x4", 1, 8, 32),
        ("v4:2x2x1", 1, 4, 32),
        ("v4:2x4x4", 1, 32, 32),
        ("v5p:4x4x12", 1, 192, 95),
        ("v4:2x2x2", 1, 8, 32),
        ("V5P:4x4x4", 1, 64, 95),
        ("h100:16", 1, 16, 80),
        ("cpu:512", 1, 512, None),
    ],
)
def test_targets(text, slices, devices, gigabytes):
    target = parse_target(text, slices)
    assert target.devices == devices
    memory = None if gigabytes is None else pytest.approx(gigabytes * 1e9 / 2**30)
    assert target.memory_gib == memory
    assert parse_target(text, slices, memory_gib=1.5).memory_gib == 1.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("v5:4x4", "expected one of v4, v5e, .*found 'v5'; did you mean v5"),
        ("h1000:8", "did you mean h100"),
        ("v5e", "expected a shape as in v5e:4x4, found 'v5e'"),
        ("v5e:16", "expected a shape as in v5e:4x4"),
        ("v5e:4x4x4", "expected a shape as in v5e:4x4"),
        ("v4:4x4", "expected a shape as in v4:2x2x2"),
        ("v5e:0x4", "expected a shape as in v5e:4x4"),
        ("v5e:4x5", r"expected a slice of v5e \(1x1, 2x2, 2x4, .* 16x16\), found 'v5e:4x5'"),
        ("v6e:4x2", "expected a slice of v6e"),
        ("v4:2x2x3", r"expected a slice of v4 \(2x2x1, or AxBxC from .*\), found 'v4:2x2x3'"),
        ("v5p:2x2x8", "expected a slice of v5p"),
        ("v5p:8x4x4", "expected a slice of v5p"),
        ("h100:4x4", "expected a shape as in h100:16"),
        ("cpu:5000", "expected at most 4096 devices, found 5000"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(UserError, match=f"--topology: .*{message}"):
        parse_target(text)


def test_the_compiler_of_tpus_is_for_tpus():
    with pytest.raises(UserError, match="--compiler: expected cpu for h100:8, found tpu"):
        devices_of(parse_target("h100:8"), "tpu")
