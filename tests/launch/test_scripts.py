"""Shell scripts: they parse, shellcheck has nothing to say, they explain themselves."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(
    str(path.relative_to(ROOT))
    for pattern in ("*.sh", "*.sbatch")
    for path in (ROOT / "launch").rglob(pattern)
)
PROGRAMS = ("launch/slurm/train.sbatch", "launch/slurm/sweep.sbatch", "launch/tpu_vm/pod.sh")


@pytest.mark.parametrize("script", SCRIPTS)
def test_script_parses_and_can_be_run(script):
    done = subprocess.run(["bash", "-n", script], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert os.access(ROOT / script, os.X_OK)
    assert (ROOT / script).read_text().startswith("#!/usr/bin/env bash\n")


@pytest.mark.parametrize("script", SCRIPTS)
def test_shellcheck_has_nothing_to_say(script):
    if not shutil.which("shellcheck"):
        pytest.skip("needs shellcheck")
    done = subprocess.run(["shellcheck", script], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", PROGRAMS)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_has_examples(script, flag):
    done = subprocess.run([script, flag], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "usage: " in done.stdout and "for example" in done.stdout and script in done.stdout
    assert len(done.stdout.splitlines()) < 40


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ([], {}, "--config: expected a file such as"),
        (["--config=c.py"], {}, "--workdir: expected a directory that all nodes share"),
        (["--config", "c.py"], {}, "unexpected argument 'c.py'; options start with --"),
        (["--config=c.py", "--workdir=w"], {}, "expected to be run by SLURM"),
        (
            ["--config=c.py", "--workdir=w"],
            {"ATTENTION_JAX_REQUEUES": "many"},
            "ATTENTION_JAX_REQUEUES: expected a number, found 'many'",
        ),
    ],
)
def test_mistakes_in_a_job_are_one_line(arguments, environment, message):
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("SLURM_")}
    done = subprocess.run(
        [PROGRAMS[0], *arguments], env=inherited | environment, cwd=ROOT,
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}") and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "restarts", "is_requeued"),
    [
        (0, 0, False),
        (75, 0, True),
        (75, 11, True),
        (75, 100, False),
        (137, 0, True),  # a task was killed for its memory, beside some that left with 75
        (137, 10, False),
        (200, 0, False),  # as task.sh ranks the codes 130, 1 and 2
        (201, 0, False),
        (202, 0, False),
    ],
)
def test_job_goes_back_to_the_queue_if_it_saved_or_was_killed(
    code, restarts, is_requeued, tmp_path
):
    for name, body in (("srun", f"exit {code}"), ("scontrol", f'echo "$@" > {tmp_path}/asked')):
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("SLURM_")}
    environment = inherited | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "SLURM_JOB_ID": "7",
        "SLURM_RESTART_COUNT": str(restarts),
    }
    done = subprocess.run(
        [PROGRAMS[0], "--config=c.py", "--workdir=w"], env=environment, cwd=ROOT,
        capture_output=True, text=True,
    )  # fmt: skip
    expected = {200: 130, 201: 1, 202: 2}.get(code, code)
    assert (done.returncode, done.stderr) == (expected, "")
    asked = tmp_path / "asked"
    assert (asked.read_text() if asked.exists() else "") == ("requeue 7\n" if is_requeued else "")
    assert ("back to the queue" in done.stdout) == is_requeued
    assert ("are allowed" in done.stdout) == (code in (75, 137) and not is_requeued)


TASK = "launch/slurm/task.sh"


def task_of_slurm(command, **environment):
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("SLURM_")}
    return subprocess.run(
        [TASK, "bash", "-c", command], env=inherited | environment, cwd=ROOT,
        capture_output=True, text=True, start_new_session=True,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "rank"),
    [(0, 0), (75, 75), (137, 137), (130, 200), (1, 201), (3, 201), (127, 201), (2, 202)],
)
def test_the_worst_code_of_a_job_is_the_highest(code, rank):
    assert task_of_slurm(f"exit {code}").returncode == rank


def test_chatter_of_collectives_is_left_out_of_what_tasks_print():
    gloo = "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number of peers is : 1"
    done = task_of_slurm(f"echo one; echo '{gloo}'; echo two >&2; echo 'of [Gloo]'; exit 75")
    assert (done.returncode, done.stdout, done.stderr) == (75, "one\nof [Gloo]\n", "two\n")


def test_what_is_printed_after_a_signal_is_not_lost():
    # To the whole group, as `srun` and a terminal send it.
    done = task_of_slurm("trap 'sleep 0.2; echo saved; exit 75' TERM; kill -TERM 0; sleep 5 & wait")
    assert (done.returncode, done.stdout) == (75, "saved\n")


@pytest.mark.parametrize(
    ("tasks", "node", "local", "gpus", "expected"),
    [
        ("8(x2)", 1, 3, 8, "3"),
        ("2", 0, 1, 8, "4,5,6,7"),
        ("1(x2)", 1, 0, 4, "0,1,2,3"),
        ("4(x2),2", 1, 1, 4, "1"),
        ("4(x2),2", 2, 1, 4, "2,3"),
        ("8(x2)", 0, 0, 0, "none"),
    ],
)
def test_tasks_share_the_gpus_of_their_node(tasks, node, local, gpus, expected):
    done = task_of_slurm(
        "echo ${JAX_LOCAL_DEVICE_IDS:-none}",
        SLURM_NTASKS="16",
        SLURM_STEP_TASKS_PER_NODE=tasks,
        SLURM_NODEID=str(node),
        SLURM_LOCALID=str(local),
        SLURM_GPUS_ON_NODE=str(gpus),
        CUDA_VISIBLE_DEVICES=",".join(map(str, range(gpus))),
    )
    assert (done.returncode, done.stdout) == (0, f"{expected}\n"), done.stderr


def test_a_task_that_sees_only_its_own_gpus_takes_them_all():
    done = task_of_slurm(
        "echo $JAX_LOCAL_DEVICE_IDS",
        SLURM_NTASKS="4",
        SLURM_STEP_TASKS_PER_NODE="2(x2)",
        SLURM_LOCALID="1",
        SLURM_GPUS_ON_NODE="4",
        CUDA_VISIBLE_DEVICES="2,3",
    )
    assert done.stdout == "0,1\n"


def test_gpus_that_cannot_be_shared_are_a_mistake():
    gpus = {"CUDA_VISIBLE_DEVICES": "0,1,2", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_NTASKS": "2"}
    done = task_of_slurm("true", **gpus)
    assert done.returncode == 202
    assert done.stderr == "error: expected tasks that share the 3 GPUs of a node evenly, found 2\n"


def test_a_task_ends_with_what_its_command_makes_of_a_signal():
    done = task_of_slurm("trap 'exit 75' TERM; kill -TERM $PPID; kill -TERM $$; sleep 5")
    assert done.returncode == 75


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        ([], {}, "--workdir: expected the directory of a sweep, found none"),
        (["--config=c.py"], {}, "unexpected argument '--config=c.py'; expected --workdir=DIR"),
        (["--workdir=w"], {}, "expected an array: sbatch --array=0-8 launch/slurm/sweep.sbatch"),
        (["--workdir=/none"], {"SLURM_ARRAY_TASK_ID": "0"}, "/none: expected the directory of"),
    ],
)
def test_mistakes_in_an_array_are_one_line(arguments, environment, message):
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("SLURM_")}
    environment = {"ATTENTION_JAX_PYTHON": sys.executable, **environment}
    done = subprocess.run(
        [PROGRAMS[1], *arguments], env=inherited | environment, cwd=ROOT,
        capture_output=True, text=True,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}") and done.stderr.count("\n") == 1


def test_a_task_of_an_array_trains_the_run_of_its_number(tmp_path):
    """With every word of its command as it is, and with the code that training ends with."""
    stand_ins = {
        "python": """[ "$*" = "-m launch.sweep --workdir=a b --arguments=3" ] || exit 9
printf '%s\\n' --config=c.py '--workdir=a b/x=1/seed0' "--config.splits=('test', )"
""",
        "srun": 'printf "%s\\n" "${@: -4}"; exit 201',
    }
    for name, body in stand_ins.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    inherited = {name: text for name, text in os.environ.items() if not name.startswith("SLURM_")}
    environment = inherited | {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "ATTENTION_JAX_PYTHON": str(tmp_path / "python"),
        "SLURM_JOB_ID": "7",
        "SLURM_ARRAY_TASK_ID": "3",
    }
    done = subprocess.run(
        [PROGRAMS[1], "--workdir=a b"], env=environment, cwd=ROOT, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[1:] == [
        "launch.train", "--config=c.py", "--workdir=a b/x=1/seed0", "--config.splits=('test', )",
    ]  # fmt: skip
