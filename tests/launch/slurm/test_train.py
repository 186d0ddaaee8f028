"""Preempted under a real SLURM, a job of two tasks saves, is requeued and continues."""

import json
import os
import re
import sys
import time

import pytest

from tests.launch.slurm.cluster import Unavailable, running_cluster, wait_for

pytestmark = pytest.mark.early

STEPS = 60


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A cluster of one node."""
    folder = tmp_path_factory.mktemp("slurm")
    try:
        with running_cluster(folder) as cluster:
            yield cluster
    except Unavailable as error:
        pytest.skip(f"no SLURM: {error}")


@pytest.mark.timeout(1800)
def test_preempted_job_of_two_tasks_saves_is_requeued_and_continues(slurm, repository, tmp_path):
    log, workdir = tmp_path / "job.log", tmp_path / "run"
    environment = {
        "ATTENTION_JAX_PYTHON": sys.executable,
        "JAX_DISABLE_MOST_OPTIMIZATIONS": os.environ["JAX_DISABLE_MOST_OPTIMIZATIONS"],
        "JAX_PLATFORMS": "cpu",
        "PATH": os.environ["PATH"],
        "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"],
    }
    exported = ",".join(["NONE", *(f"{name}={text}" for name, text in environment.items())])
    number = slurm(
        "sbatch", "--parsable", "--ntasks=2", "--partition=normal", f"--output={log}",
        f"--export={exported}", "launch/slurm/train.sbatch",
        "--config=configs/bahdanau2015.py:smoke", f"--workdir={workdir}",
        f"--config.training.num_steps={STEPS}", "--config.training.log_every_steps=5",
        "--config.evaluation.splits=()", "--config.data.num_buckets=1",
        cwd=repository,
    ).strip()  # fmt: skip

    def said() -> str:
        return log.read_text() if log.exists() else ""

    def explain() -> str:
        return f"{said()[-3000:]}\n{slurm.job(number)}\n{slurm.logs()}"

    wait_for(lambda: re.search(r"step 5/", said()) is not None, 500, explain)
    urgent = slurm(
        "sbatch", "--parsable", "--partition=urgent", "--ntasks=2", "--output=/dev/null",
        "--wrap=true",
    ).strip()  # fmt: skip
    wait_for(lambda: "back to the queue" in said(), 300, explain)
    wait_for(lambda: slurm.job(urgent)["JobState"] == "COMPLETED", 120, explain)
    assert slurm.job(number)["JobState"] == "PENDING", explain()

    # By itself it would wait for minutes, so that the node can clean up. A start in the second of
    # the requeue is refused, since credentials are revoked by the second.
    wait_for(slurm.has_cleaned_up, 120, explain)
    time.sleep(3)
    slurm("scontrol", "update", f"JobId={number}", "StartTime=now")
    wait_for(lambda: slurm.job(number)["JobState"] in ("COMPLETED", "FAILED"), 500, explain)
    job = slurm.job(number)
    ended = job["JobState"], job["ExitCode"], job["Restarts"]
    assert ended == ("COMPLETED", "0:0", "1"), explain()
    saved = int(re.search(r"told to stop: step (\d+) is saved", said())[1])
    assert 5 <= saved < STEPS
    assert f"continuing after step {saved}" in said()
    assert "2 tasks" in said() and "start 2" in said()
    facts = json.loads((workdir / "run.json").read_text())
    assert len(facts["started"]) == 2 and facts["finished"]


def test_mistake_fails_the_job_and_does_not_requeue_it(slurm, repository, tmp_path):
    log = tmp_path / "job.log"
    number = slurm(
        "sbatch", "--parsable", "--ntasks=1", f"--output={log}",
        f"--export=NONE,ATTENTION_JAX_PYTHON={sys.executable},JAX_PLATFORMS=cpu",
        "launch/slurm/train.sbatch", "--config=configs/none.py", f"--workdir={tmp_path / 'run'}",
        cwd=repository,
    ).strip()  # fmt: skip
    wait_for(lambda: slurm.job(number)["JobState"] == "FAILED", 120, slurm.logs)
    assert slurm.job(number)["ExitCode"] == "2:0"
    assert "error: --config: expected a file, found none" in log.read_text()


@pytest.fixture
def stand_in(tmp_path):
    """What runs in place of Python: tells what each task was given, and ends as its number says."""
    path = tmp_path / "python"
    path.write_text(
        """#!/usr/bin/env bash
echo "task $SLURM_PROCID of $SLURM_NTASKS: GPUs ${JAX_LOCAL_DEVICE_IDS:-any}" \\
  "of ${CUDA_VISIBLE_DEVICES:-none}, ${ATTENTION_JAX_DISTRIBUTED:-alone}"
codes=(${CODES:-0 0})
exit "${codes[$SLURM_PROCID]}"
"""
    )
    path.chmod(0o755)
    return path


def run_job(slurm, repository, stand_in, *options, codes="0 0"):
    """Returns (what a job said, what SLURM knows of it) when it has ended or waits again."""
    log = stand_in.parent / "job.log"
    number = slurm(
        "sbatch", "--parsable", *options, f"--output={log}",
        f"--export=ALL,ATTENTION_JAX_PYTHON={stand_in},CODES={codes}", "launch/slurm/train.sbatch",
        "--config=c.py", f"--workdir={stand_in.parent / 'run'}",
        cwd=repository,
    ).strip()  # fmt: skip
    ended = ("COMPLETED", "FAILED")
    is_requeued = f"job {number}: saved, and back to the queue"

    def said() -> str:
        return log.read_text() if log.exists() else ""

    wait_for(
        lambda: slurm.job(number)["JobState"] in ended or is_requeued in said(), 60, slurm.logs
    )
    job = slurm.job(number)
    if job["JobState"] not in ended:
        slurm("scancel", number)
    return said(), job


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            ["--ntasks-per-node=2", "--gpus-per-node=2"],
            ["task 0 of 2: GPUs 0 of 0,1, auto", "task 1 of 2: GPUs 1 of 0,1, auto"],
        ),
        (
            ["--ntasks=2", "--gpus-per-task=1"],
            ["task 0 of 2: GPUs 0 of 0, auto", "task 1 of 2: GPUs 0 of 1, auto"],
        ),
        (["--nodes=1", "--gpus-per-node=2"], ["task 0 of 1: GPUs any of 0,1, alone"]),
    ],
)
def test_tasks_take_their_gpus_however_they_were_asked_for(
    slurm, repository, stand_in, options, expected
):
    if not slurm.has_gpus:
        pytest.skip("may not make device files, which SLURM takes for GPUs")
    said, job = run_job(slurm, repository, stand_in, *options)
    assert job["JobState"] == "COMPLETED", said
    assert sorted(said.splitlines()[1:]) == expected


@pytest.mark.parametrize(
    ("codes", "ended"), [("75 2", "2:0"), ("1 75", "1:0"), ("75 75", None), ("0 75", None)]
)
def test_a_job_is_as_bad_as_its_worst_task(slurm, repository, stand_in, codes, ended):
    said, job = run_job(slurm, repository, stand_in, "--ntasks=2", codes=codes)
    assert ("saved, and back to the queue" in said) == (ended is None), said
    if ended:
        assert (job["JobState"], job["ExitCode"]) == ("FAILED", ended)


def test_an_array_trains_the_runs_of_a_sweep(slurm, repository, launch, tmp_path):
    """Each task the run of its number; what trains is a stand-in that tells what it was given."""
    workdir, python = tmp_path / "sweep", tmp_path / "python"
    grid = "--grid=optimizer.learning_rate=1e-3,3e-3"
    launch("sweep", "--config=configs/quickstart.py:smoke", grid, f"--workdir={workdir}", "--list")
    python.write_text(
        f"""#!/usr/bin/env bash
[ "$2" = launch.sweep ] && exec {sys.executable} "$@"
echo "$@"
"""
    )
    python.chmod(0o755)
    slurm(
        "sbatch", "--parsable", "--array=0-1", f"--output={tmp_path}/%a.log",
        f"--export=ALL,ATTENTION_JAX_PYTHON={python}", "launch/slurm/sweep.sbatch",
        f"--workdir={workdir}",
        cwd=repository,
    )  # fmt: skip
    logs = [tmp_path / f"{number}.log" for number in (0, 1)]

    def is_told(log) -> bool:
        return log.exists() and "launch.train" in log.read_text()

    wait_for(lambda: all(map(is_told, logs)), 120, slurm.logs)
    for log, rate in zip(logs, ("1e-3", "3e-3"), strict=True):
        run = f"--workdir={workdir}/learning_rate={rate}/seed0"
        assert f"{run} --config.optimizer.learning_rate={rate} --config.seed=0" in log.read_text()
