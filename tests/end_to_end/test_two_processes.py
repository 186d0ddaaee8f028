"""Two processes of one host train, validate, decode and evaluate together as one would."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.early

ARGUMENTS = [
    "--config=experiments/benchmarks/reliability/tiny.py",
    "--config.training.num_steps=20",
    "--config.training.evaluate_every_steps=10",
    "--config.training.metric=chrf",
    "--config.training.mode=max",
    "--config.evaluation.num_validation_examples=40",
    "--config.evaluation.num_heat_maps=1",
    "--config.data.batch_size=15",  # which two processes cannot share evenly
]


def launch(repository, *command):
    done = subprocess.run(
        [*command], cwd=repository, env={**os.environ, "PYTHON": sys.executable},
        capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def runs(repository, tmp_path_factory):
    """The run of one process and that of two."""
    folder = tmp_path_factory.mktemp("processes")
    train = [sys.executable, "-m", "launch.train", *ARGUMENTS]
    launch(repository, *train, f"--workdir={folder / 'one'}")
    launch(repository, "launch/local.sh", "2", *train, f"--workdir={folder / 'two'}")
    return folder / "one", folder / "two"


def lines(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def test_losses_are_those_of_one_process(runs):
    one, two = (lines(run) for run in runs)
    assert [(a["step"], a["split"]) for a in one] == [(b["step"], b["split"]) for b in two]
    for first, second in zip(one, two, strict=True):
        assert second["loss"] == pytest.approx(first["loss"], abs=1e-6)
        assert second.get("chrf", 0.0) == pytest.approx(first.get("chrf", 0.0), abs=1e-9)


SHARDINGS = {
    "pmap": ["strategy=pmap"],
    "fsdp": ["fsdp=2", "rules=(('vocab', 'fsdp'),)"],  # none is large enough without
    "tensor": ["tensor=2"],
}
CONTINUED_BY_TWO = "pmap"  # what the others begin with two


@pytest.mark.parametrize("name", SHARDINGS)
def test_what_two_split_has_the_losses_of_one_each_continuing_the_other(
    repository, runs, tmp_path, name
):
    train = [
        sys.executable, "-m", "launch.train", *ARGUMENTS,
        f"--workdir={tmp_path}", "--config.evaluation.splits=()",
    ]  # fmt: skip
    split = [f"--config.sharding.{value}" for value in SHARDINGS[name]]
    halves = [["launch/local.sh", "2", *train, *split], train]
    first, second = reversed(halves) if name == CONTINUED_BY_TWO else halves
    launch(repository, *first, "--config.training.num_steps=10")
    assert {line["step"] for line in lines(tmp_path)} == {10}
    launch(repository, *second)
    one, two = ({(x["step"], x["split"]): x for x in lines(run)} for run in (runs[0], tmp_path))
    assert {split for _, split in two} == {"train", "validation"} and two.keys() <= one.keys()
    assert max(two) == (20, "validation")
    for place, second in two.items():
        assert second["loss"] == pytest.approx(one[place]["loss"], abs=1e-6)


def test_the_first_process_writes_and_the_other_is_silent(runs):
    one, two = runs
    names = {path.name for path in two.iterdir()} - {"logs"}
    assert names == {path.name for path in one.iterdir()}
    assert (two / "predictions.test.txt").read_text() == (one / "predictions.test.txt").read_text()
    assert json.loads((two / "run.json").read_text())["hardware"]["processes"] == 2
    first, second = ((two / "logs" / f"process_{n}.log").read_text() for n in range(2))
    assert "step 20/20" in first and "Everything is in" in first
    # What its libraries say aside.
    assert all(line.startswith("[Gloo]") for line in second.splitlines())


def test_one_process_evaluates_what_two_have_trained(repository, runs):
    before = json.loads((runs[1] / "results.json").read_text())["test"]
    launch(repository, sys.executable, "-m", "launch.evaluate", f"--workdir={runs[1]}")
    after = json.loads((runs[1] / "results.json").read_text())["test"]
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6)
