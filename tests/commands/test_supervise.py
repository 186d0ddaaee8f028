"""A supervisor starts what was cut off again, as long as it gets on."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from attention_jax.commands import supervisor
from attention_jax.commands.watched_run import workdir_of
from attention_jax.host import children

# The program has no JAX in its own process; here other tests may have started it.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")

# Each start ends with the next code of a list, after saving a step or not.
WORKER = """
import os, pathlib, sys
folder = pathlib.Path(sys.argv[1].split("=")[1])
folder.mkdir(parents=True, exist_ok=True)
started = folder / "started"
number = len(started.read_text()) if started.exists() else 0
started.write_text("x" * (number + 1))
word = sys.argv[2].split(",")[number]
if word.startswith("s"):
    step = folder / "checkpoints" / str(10 * (number + 1))
    step.mkdir(parents=True)
    (step / "commit_success.txt").touch()
if word.endswith("k"):
    os.kill(os.getpid(), 9)
sys.exit(int(word.removeprefix("s")))
"""


def supervise(repository, workdir, words, *options):
    return subprocess.run(
        ["launch/supervise.sh", "--wait=0", *options, sys.executable, "-c", WORKER,
         f"--workdir={workdir}", words],
        cwd=repository, env={**os.environ, "PYTHON": sys.executable}, capture_output=True,
        text=True, timeout=300,
    )  # fmt: skip


def starts(workdir):
    return len((workdir / "started").read_text())


@pytest.mark.parametrize(
    ("words", "code", "count"),
    [
        ("0", 0, 1),
        ("s75,0", 0, 2),
        ("k,s75,sk,1,0", 0, 5),
        ("2", 2, 1),
        ("130", 130, 1),
        ("75,75,75,75", 75, 3),  # two retries without progress
        ("75,75,s75,75,75,75,0", 75, 6),  # counted anew after progress
    ],
)
def test_it_is_started_again_as_long_as_it_gets_on(repository, tmp_path, words, code, count):
    done = supervise(repository, tmp_path / "run", words, "--retries=2")
    assert (done.returncode, starts(tmp_path / "run")) == (code, count), done.stderr
    assert done.stderr.count("started again") == count - 1


def test_lines_say_what_happened(repository, tmp_path):
    done = supervise(repository, tmp_path / "run", "s75,k,75,75", "--retries=2")
    assert done.stderr.splitlines() == [
        "supervise: exit code 75, step 10 is saved; started again in 0 s",
        "supervise: killed by SIGKILL, step 10 is saved; started again in 0 s "
        "(retry 1 of 2 without progress)",
        "supervise: exit code 75, step 10 is saved; started again in 0 s "
        "(retry 2 of 2 without progress)",
        "supervise: exit code 75, step 10 is saved; given up after 2 retries without progress",
    ]


def test_waiting_doubles_without_progress(tmp_path, monkeypatch):
    waits = []
    command = [sys.executable, "-c", WORKER, f"--workdir={tmp_path}", "75,75,75,s75,75,0"]
    subject = supervisor.Supervisor(command, retries=5, wait=4)
    monkeypatch.setattr(subject, "_sleep", lambda seconds, received: waits.append(seconds))
    assert subject.run() == 0
    assert waits == [4, 8, 16, 4, 4]


def test_it_stops_when_told_to(repository, tmp_path):
    script = (
        "import pathlib, signal, sys, time\n"
        "signal.signal(signal.SIGTERM, lambda n, f: sys.exit(75))\n"
        "pathlib.Path(sys.argv[1].split('=')[1], 'ready').touch()\n"
        "time.sleep(600)"
    )
    process = subprocess.Popen(
        ["launch/supervise.sh", sys.executable, "-c", script, f"--workdir={tmp_path}"],
        cwd=repository, env={**os.environ, "PYTHON": sys.executable},
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 300
        while not (tmp_path / "ready").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 75
    finally:
        process.kill()
        process.wait()


def test_it_waits_for_a_process_that_still_saves(tmp_path):
    import fcntl

    command = ["true", f"--workdir={tmp_path}"]
    subject = supervisor.Supervisor(command, retries=1, wait=0)
    assert not subject._locked([])
    with (tmp_path / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert not supervisor._is_free(tmp_path / ".lock")
        assert subject._locked([signal.SIGTERM])
    assert supervisor._is_free(tmp_path / ".lock")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["true"], "expected a command with --workdir=DIRECTORY"),
        (["--retries=many", "true"], "--retries: expected a whole number, found 'many'"),
        (["--tries=2", "true"], "expected one of --retries=VALUE, --wait=VALUE or a command"),
    ],
)
def test_mistakes_are_one_line(repository, arguments, message):
    done = subprocess.run(
        ["launch/supervise.sh", *arguments], cwd=repository, capture_output=True, text=True,
        env={**os.environ, "PYTHON": sys.executable},
    )  # fmt: skip
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1


def test_a_run_directory_may_have_a_line_break_in_its_name():
    assert workdir_of(["train", "--workdir=/a\nb"]) == pathlib.Path("/a\nb")
    assert children.split(["--logs=a\nb", "train"], ["logs"]) == ({"logs": "a\nb"}, ["train"])
