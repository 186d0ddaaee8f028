"""A run that is cut off in any way ends, when continued, as one that was not."""

import json
import shutil
import signal

import pytest

from attention_jax.plotting.curves import read_metrics
from tests.end_to_end.kill_and_resume import parameters, train

STEPS = 60


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """A run that was left alone."""
    workdir = tmp_path_factory.mktemp("uninterrupted") / "run"
    result = train(workdir, STEPS)
    assert result.returncode == 0, result.stderr
    return workdir


def test_killed_three_times_ends_with_the_same_parameters(uninterrupted, tmp_path):
    workdir = tmp_path / "run"
    for step, seconds in ((9, 0.002), (29, 0.013), (48, 0.0)):
        result = train(workdir, STEPS, stop=(signal.SIGKILL, step, seconds))
        assert result.returncode == -signal.SIGKILL, result.stderr
        assert parameters(workdir) is None
    result = train(workdir, STEPS)
    assert result.returncode == 0, result.stderr
    assert "continuing after step" in result.stderr
    assert parameters(workdir) == parameters(uninterrupted)
    assert _losses(workdir) == _losses(uninterrupted)
    assert (workdir / "predictions.test.txt").read_text() == (
        uninterrupted / "predictions.test.txt"
    ).read_text()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_signal_saves_the_step_and_the_same_command_continues(
    uninterrupted, tmp_path, number, code
):
    workdir = tmp_path / "run"
    result = train(workdir, STEPS, stop=(number, 20, 0.0))
    assert result.returncode == code, result.stderr
    assert "is saved, the same command continues" in result.stderr
    saved = max(int(path.name) for path in workdir.glob("checkpoints/[0-9]*"))
    assert 20 <= saved < STEPS
    result = train(workdir, STEPS)
    assert f"continuing after step {saved}" in result.stderr
    assert parameters(workdir) == parameters(uninterrupted)


def test_damaged_checkpoint_is_named_and_made_good(uninterrupted, tmp_path):
    workdir = shutil.copytree(uninterrupted, tmp_path / "run")
    newest = workdir / "checkpoints" / str(STEPS)
    victim = max((p for p in newest.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)
    data = bytearray(victim.read_bytes())
    data[len(data) // 2] ^= 16
    victim.write_bytes(data)
    (workdir / "run.json").write_text("{}")
    result = train(workdir, STEPS)
    assert result.returncode == 0, result.stderr
    warning = next(line for line in result.stderr.splitlines() if line.startswith("warning:"))
    assert f"step {STEPS}" in warning and victim.name in warning
    assert parameters(workdir) == parameters(uninterrupted)


def test_complete_run_says_so_and_its_length_can_be_changed(uninterrupted, tmp_path):
    workdir = shutil.copytree(uninterrupted, tmp_path / "run")
    result = train(workdir, STEPS)
    assert result.returncode == 0
    assert "This run is complete" in result.stdout and str(workdir) in result.stdout
    result = train(workdir, STEPS + 10)
    assert f"continuing after step {STEPS}" in result.stderr
    assert json.loads((workdir / "results.json").read_text())["test"]["step"] > STEPS - 30


def _losses(workdir):
    return [
        (line["step"], line["split"], line["loss"])
        for line in read_metrics(workdir / "metrics.jsonl")
        if line["split"] == "validation"
    ]
