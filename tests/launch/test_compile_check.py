"""`launch.compile_check`: a table, exit code 1 where it does not fit, one line for mistakes."""

import importlib.metadata
import re

import pytest

CONFIG = "--config=configs/quickstart.py:smoke"


def test_too_little_memory_ends_with_one_line_and_code_1(launch):
    result = launch(
        "compile_check", CONFIG, "--topology=h100:4", "--memory_gib=0.001",
        "--config.sharding.strategy=shard_map", "--config.data.num_buckets=1",
    )  # fmt: skip
    assert result.code == 1, result.err
    assert re.fullmatch(
        r"error: h100:4: needs 0\.\d+ GiB on each device, which has 0\.001; .*\n", result.err
    )
    assert "h100:4: 4 devices, mesh data=4, by 4 simulated CPU devices" in result.out
    assert "the step was lowered for cuda, too" in result.out
    parameters = re.search(r"([\d,]+) parameters, batch 32 x 9 x 9", result.out)[1]
    held = float(re.search(r"parameters +([\d.]+)\n", result.out)[1])
    assert held == pytest.approx(4 * int(parameters.replace(",", "")) / 2**20, abs=0.06)
    assert re.search(r"all-reduce over data \(4 devices\) +2 ", result.out)
    # What shard_map holds is what decoding holds: all of them.
    assert f"decoding holds all parameters: {held} MiB of a device's 1.0\n" in result.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([CONFIG], "--topology: expected a value, found none"),
        ([CONFIG, "--topology=v5e:4"], "--topology: expected a shape as in v5e:4x4, found 'v5e:4'"),
        ([CONFIG, "--topology=h10:4"], "--topology: expected one of .*did you mean h100"),
        (["--topology=cpu:4"], "--config: expected a file"),
        ([CONFIG, "--topology=cpu:4", "--memory_gib=x"], "--memory_gib: expected a number"),
        ([CONFIG, "--topology=cpu:2", "--workdir=/none"], "/none: expected the directory of a run"),
        (
            [CONFIG, "--topology=cpu:4", "--config.sharding.fsdp=3"],
            "config.sharding: expected sizes that divide the number of devices",
        ),
    ],
)
def test_mistakes_are_one_line(launch, arguments, message):
    assert re.match(message, launch("compile_check", *arguments).error)


def test_a_slice_of_tpus_is_compiled_for_without_one(launch):
    try:
        importlib.metadata.version("libtpu")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs the package libtpu")
    result = launch("compile_check", CONFIG, "--topology=v5e:2x2", "--config.data.num_buckets=1")
    assert result.code == 0, result.err
    assert "mesh data=4, by the TPU compiler" in result.out
    assert re.search(r"all-reduce over data \(4 devices\)", result.out)
