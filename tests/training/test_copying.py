"""Copying in a whole training: cut off, and in parts, by two processes of two devices each.

Words beyond the vocabulary have ids of their own row, which all of these deal out anew.
"""

import json
import os
import re
import subprocess
import sys

import pytest

from attention_jax.plotting.curves import read_metrics

pytestmark = pytest.mark.early

STEPS = 6
OVERRIDES = {
    "data.batch_size": 15,  # which neither two nor four can share evenly
    "data.max_train_examples": 60,
    "model.sources.source.encoder.name": "concatenation",
    "model.embedding_dropout": 0,  # of which parts of a batch draw another
    "model.output_dropout": 0,
    "optimizer.name": "sgd",
    "optimizer.learning_rate": 0.5,
    "schedule.name": "constant",
    "training.num_steps": STEPS,
    "training.log_every_steps": 1,
    "training.evaluate_every_steps": 0,
    "search.method": "greedy",
    "evaluation.splits": "('test',)",
    "evaluation.num_heat_maps": 0,
}


def flags(workdir, **changes):
    values = {**OVERRIDES, **changes}
    given = [f"--config.{path}={value}" for path, value in values.items()]
    return ["--config=configs/gu2016.py:smoke", f"--workdir={workdir}", *given]


@pytest.fixture(scope="module")
def whole(launch, tmp_path_factory):
    """The run of one process on one device, at once, whose outputs copy words."""
    workdir = tmp_path_factory.mktemp("whole") / "run"
    train(launch, workdir)
    assert len(re.findall(r"[a-z]\d+[a-z]", outputs(workdir))) > 20
    return workdir


def train(launch, workdir, **changes):
    ended = launch("train", *flags(workdir, **changes))
    assert ended.code == 0, ended.err


def outputs(run):
    return (run / "predictions.test.txt").read_text()


def facts(run):
    return json.loads((run / "run.json").read_text())


def losses(run):
    lines = read_metrics(run / "metrics.jsonl")
    found = [line["loss"] for line in lines if line["split"] == "train"]
    assert len(found) == STEPS
    return found


def test_a_training_that_was_cut_off_ends_with_the_same_bits(launch, tmp_path, whole):
    for steps in (STEPS // 2, STEPS):
        train(launch, tmp_path, **{"training.num_steps": steps, "evaluation.splits": "()"})
    assert facts(tmp_path)["parameters"] == facts(whole)["parameters"]
    assert losses(tmp_path) == losses(whole)


def test_two_processes_of_two_devices_accumulate_and_decode_as_one_does(
    repository, tmp_path, whole
):
    command = ["launch/local.sh", "2", sys.executable, "-m", "launch.train", *flags(tmp_path),
               "--config.training.accumulate_steps=2"]  # fmt: skip
    two = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=2"
    done = subprocess.run(
        command, cwd=repository, env={**os.environ, "PYTHON": sys.executable, "XLA_FLAGS": two},
        capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    hardware = facts(tmp_path)["hardware"]
    assert hardware["processes"] == 2 and len(hardware["devices"]) == 4
    assert losses(tmp_path) == pytest.approx(losses(whole), rel=1e-6)
    assert outputs(tmp_path) == outputs(whole)
    scores = [json.loads((run / "results.json").read_text()) for run in (tmp_path, whole)]
    assert scores[0]["test"] == pytest.approx(scores[1]["test"], rel=1e-5)
