"""The plan of a training on other devices: its tables, one line for mistakes."""

import os
import re
import subprocess
import sys

import pytest

CONFIG = "--config=configs/quickstart.py:smoke"


def plan(repository, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "experiments.benchmarks.scaling.plan", CONFIG, *arguments],
        cwd=repository, capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )  # fmt: skip


def test_a_hundred_devices_are_planned_without_having_them(repository, tmp_path):
    page = tmp_path / "plan.md"
    done = plan(
        repository, "--devices=128", "--mesh=fsdp=8", "--per_device=2", f"--out={page}",
        "--config.data.num_buckets=1",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    text = page.read_text()
    command = "python -m experiments.benchmarks.scaling.plan"
    assert text.startswith(f"# Plan\n\n```sh\n{command} --config=")
    assert done.stdout.strip() in text
    row = re.search(r"\| data=16,fsdp=8 \| 256 x 9 x 9 \| (.*) \|", done.stdout)[1].split(" | ")
    parameters, optimizer, gradients, activations, total = map(float, row)
    whole = 4 * int(re.search(r"([\d,]+) parameters", done.stdout)[1].replace(",", "")) / 2**20
    assert whole / 8 <= parameters < whole / 4
    assert parameters == gradients and optimizer == pytest.approx(2 * parameters, abs=0.1)
    assert total >= parameters + optimizer + activations
    assert "| data=16,fsdp=8 | all-gather over fsdp |" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--devices=8,many"], "--devices: expected whole numbers from 1 to 4096, found 'many'"),
        (["--devices=8", "--mesh=fsdp=3"], "--mesh: expected sizes that multiply to 8"),
        # What the config leaves to the text is no mistake; that there is none is.
        (["--devices=1", "--config=configs/bahdanau2015.py:parallel",
          "--config.data.train_table=/none.tsv"], "/none.tsv: expected"),
    ],
)
def test_mistakes_are_one_line(repository, arguments, message):
    done = plan(repository, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}") and done.stderr.count("\n") == 1
