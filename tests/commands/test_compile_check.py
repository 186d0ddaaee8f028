"""`launch.compile_check`: a table, exit code 1 where it does not fit, one line for mistakes."""

import importlib.metadata
import re

import pytest

from tests.training.untrained import write_text

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


def test_gnmt_of_the_papers_size_compiles_for_eight_devices(launch, tmp_path):
    """Each of its 16 layers over all of them, by the rules of its config."""
    source, target = write_text(tmp_path, 200)
    result = launch(
        "compile_check", "--config=configs/gnmt2016.py:paper", "--topology=cpu:8",
        "--config.sharding.tensor=8", f"--config.data.train_source={source}",
        f"--config.data.train_target={target}", "--config.data.subwords.kind=words",
        "--config.data.num_buckets=1",
    )  # fmt: skip
    assert result.code == 0, result.err
    assert "cpu:8: 8 devices, mesh tensor=8" in result.out
    parameters = 4 * int(re.search(r"([\d,]+) parameters", result.out)[1].replace(",", "")) / 2**20
    assert parameters > 4 * 182e6 / 2**20  # of the layers, beside which there are few words
    held = float(re.search(r"parameters +([\d.]+)\n", result.out)[1])
    assert 1 / 8 < held / parameters < 0.15  # attention is whole
    assert re.search(r"\n\nneeds [\d,]+ MiB of each device\n$", result.out)


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
