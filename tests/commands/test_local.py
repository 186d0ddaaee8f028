"""Several processes of one host: their places, their logs, and that all of them end."""

import os
import signal
import subprocess
import sys
import time

import pytest

from attention_jax.commands.local_job import worst

SHOW = "import os; print(*(os.environ['ATTENTION_JAX_' + n] for n in ('COORDINATOR',\
 'NUM_PROCESSES', 'PROCESS_ID')))"
# Says its number when it is told to stop, and ends with a code.
WAIT = """
import os, signal, sys, time
number = int(os.environ["ATTENTION_JAX_PROCESS_ID"])
def stop(which, frame):
    print("stopped", number, flush=True)
    sys.exit(75)
signal.signal(signal.SIGTERM, stop)
open(f"{sys.argv[1]}/{number}.pid", "w").write(str(os.getpid()))
time.sleep(600)
"""
END = "import os, signal, sys; n = int(os.environ['ATTENTION_JAX_PROCESS_ID']); "


def local(repository, *arguments, **options):
    return subprocess.run(
        ["launch/local.sh", *map(str, arguments)], cwd=repository, env=environment(),
        capture_output=True, text=True, timeout=300, **options,
    )  # fmt: skip


def environment():
    return {**os.environ, "PYTHON": sys.executable}


@pytest.fixture
def waiting(repository, tmp_path):
    """A job of two processes that wait for a signal, and their ids."""
    job = subprocess.Popen(
        ["launch/local.sh", f"--logs={tmp_path}", "2", sys.executable, "-c", WAIT, str(tmp_path)],
        cwd=repository, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True,
    )  # fmt: skip
    files = [tmp_path / f"{number}.pid" for number in range(2)]
    _until(lambda: all(file.exists() and file.read_text() for file in files))
    pids = [int(file.read_text()) for file in files]
    yield job, pids
    for pid in pids:
        if _runs(pid):
            os.kill(pid, signal.SIGKILL)
    job.kill()
    job.communicate()


def test_each_process_has_its_place_and_its_log(repository, tmp_path):
    done = local(repository, f"--logs={tmp_path}", 3, sys.executable, "-c", SHOW)
    assert done.returncode == 0, done.stderr
    lines = [(tmp_path / f"process_{number}.log").read_text().split() for number in range(3)]
    assert [line[1:] for line in lines] == [["3", "0"], ["3", "1"], ["3", "2"]]
    assert len({line[0] for line in lines}) == 1 and lines[0][0].startswith("127.0.0.1:")
    assert done.stdout.split() == lines[0]


def test_what_the_library_of_collectives_tells_is_not_shown(repository, tmp_path):
    chatter = "[Gloo] Rank 0 is connected to 1 peer ranks. Expected number is : 1\\n"
    code = f"print('one\\n{chatter}two\\n{chatter}[Gloo] failed', end='')"
    done = local(repository, f"--logs={tmp_path}", 1, sys.executable, "-c", code)
    assert done.stdout == "one\ntwo\n[Gloo] failed"
    assert (tmp_path / "process_0.log").read_text().count("is connected to") == 2


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("sys.exit(75 if n else 0)", 75),
        ("sys.exit(75) if n else os.kill(os.getpid(), signal.SIGKILL)", 75),
        ("sys.exit(2 if n else 75)", 2),
        ("sys.exit(1 if n else 75)", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", 137),
    ],
)
def test_exit_code_says_whether_to_try_again(repository, tmp_path, body, code):
    done = local(repository, f"--logs={tmp_path}", 2, sys.executable, "-c", END + body)
    assert done.returncode == code, done.stderr
    assert ("SIGKILL" in done.stderr) == ("SIGKILL" in body)


def test_worst_is_what_decides():
    assert worst([0, 0]) == 0 and worst([0, 75, 137]) == 75 and worst([134, 137]) == 137
    assert worst([75, 1, 2]) == 2 and worst([75, 1]) == 1 and worst([130, 75]) == 130


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_reach_every_process_once(waiting, tmp_path, number):
    job, pids = waiting
    os.kill(job.pid, number)
    out, err = job.communicate(timeout=300)
    if number == signal.SIGTERM:
        assert job.returncode == 75, err
        for process in range(2):
            log = (tmp_path / f"process_{process}.log").read_text()
            assert log == f"stopped {process}\n"
        assert out == "stopped 0\n"
    else:
        assert job.returncode == 130 and not err
    assert not any(map(_runs, pids))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks the Linux kernel")
def test_processes_do_not_outlive_a_launcher_that_is_killed(waiting):
    job, pids = waiting
    job.kill()
    _until(lambda: not any(map(_runs, pids)))


def test_the_rest_is_killed_if_it_does_not_notice(repository, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_JAX_HEARTBEAT_SECONDS", "1")
    body = "from attention_jax.commands import local, local_job; "
    body += "local_job._KILL_AFTER_SECONDS = 0.0; "
    body += "sys.argv = ['local', *sys.argv[1:]]; sys.exit(local.main())"
    child = END + "import time; time.sleep(600) if n else sys.exit(75)"
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; {body}", f"--logs={tmp_path}", "2", sys.executable,
         "-c", child],
        cwd=repository, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 75 and "SIGKILL" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage: launch/local.sh"),
        (["two", "true"], "expected a number of processes and a command, found 'two true'"),
        (["2"], "expected a number of processes and a command, found '2'"),
        (["--log=x", "2", "true"], "expected one of --logs=VALUE or a command, found '--log=x'"),
        (["1", "no-such-program"], "no-such-program"),
    ],
)
def test_mistakes_are_one_line(repository, arguments, message):
    done = local(repository, *arguments)
    assert done.returncode == 2 and message in done.stdout + done.stderr
    assert not arguments or done.stderr.count("\n") == 1


def test_a_run_that_did_not_begin_leaves_no_directory(repository, tmp_path):
    workdir = tmp_path / "runs" / "mine"
    command = [sys.executable, "-c", "import sys; sys.exit('error: no') if 0 else sys.exit(2)"]
    done = local(repository, 2, *command, f"--workdir={workdir}")
    assert done.returncode == 2 and not workdir.exists()


def test_help_is_short(repository):
    for program in ("local", "supervise"):
        done = subprocess.run(
            [f"launch/{program}.sh", "--help"], cwd=repository, env=environment(),
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0 and f"usage: launch/{program}.sh" in done.stdout
        assert "for example:" in done.stdout and len(done.stdout.splitlines()) < 40


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _until(condition):
    deadline = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < deadline, "waited for nothing"
        time.sleep(0.05)
