"""`launch/tpu_vm/pod.sh` with a gcloud that records its calls, and one that plays the workers."""

import contextlib
import os
import re
import shlex
import signal
import subprocess
import time

import pytest

WHERE = ("--name=pod", "--zone=us-west4-a")
TRAINING = ("--", "--config=configs/a.py:b", "--workdir=runs/x", "--config.model.x=('a b', \"c\")")
STAGES = {
    "create": ("--type=v5litepod-16", "--spot", "--project=mine"),
    "setup": ("--bucket=gs://my-runs", "--extensions=tests/extension:tests/golden"),
    "train": ("--env=ATTENTION_JAX_DATA=runs/data", "--env=NAMED=a b'c", *TRAINING),
    "logs": ("--worker=2",),
    "stop": (),
    "delete": (),
}
TEMPLATE = "attention_jax.XXXXXX"
RECORDING = """#!/usr/bin/env bash
printf '%q ' gcloud "$@" >> "$RECORD"
echo >> "$RECORD"
"""
PLAYING = """#!/usr/bin/env bash
for argument in "$@"; do
  case "$argument" in
    --command=*) cd "$WORKER" && exec bash -c "${argument#--command=}" ;;
    pod:*) cp "$before" "$WORKER/${argument#pod:}" ;;
  esac
  before=$argument
done
"""
SUPERVISOR = """#!/usr/bin/env bash
trap 'echo told to stop; exit 75' TERM
printf '<%s>' "$ATTENTION_JAX_DISTRIBUTED" "$PYTHON" "$ATTENTION_JAX_EXTENSIONS" "$NAMED" "$@"; echo
for _ in $(seq 600); do sleep 0.1; done
"""


@pytest.fixture
def pod(repository, tmp_path):
    """Runs the script with a gcloud of a few lines first on the PATH."""

    def run(*arguments, gcloud=RECORDING, **variables):
        program = tmp_path / "bin" / "gcloud"
        program.parent.mkdir(exist_ok=True)
        program.write_text(gcloud)
        program.chmod(0o755)
        environment = {
            **os.environ,
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "RECORD": str(tmp_path / "record"),
            "WORKER": str(tmp_path / "worker"),
            "TMPDIR": str(tmp_path),
            **variables,
        }
        return subprocess.run(
            ["launch/tpu_vm/pod.sh", *arguments],
            cwd=repository, env=environment, capture_output=True, text=True, timeout=300,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("stage", STAGES)
def test_dry_run_prints_exactly_what_is_run_else(pod, tmp_path, stage):
    dry = pod(stage, *WHERE, "--dry-run", *STAGES[stage])
    assert (dry.returncode, dry.stderr) == (0, "")
    assert not (tmp_path / "record").exists()
    real = pod(stage, *WHERE, *STAGES[stage])
    assert real.returncode == 0, real.stderr
    assert "\\ " not in dry.stdout  # quotes are read more easily
    printed = [shlex.split(line.replace(TEMPLATE, "PACKED")) for line in dry.stdout.splitlines()]
    record = re.sub(r"attention_jax\.\w{6}/", "PACKED/", (tmp_path / "record").read_text())
    called = [shlex.split(line) for line in record.splitlines()]
    assert [words for words in printed if words[0] == "gcloud"] == called
    others = [words[0] for words in printed if words[0] != "gcloud"]
    packing = ["git", "mkdir", "cp", "mkdir", "cp", "tar"]
    assert others == (packing if stage == "setup" else [])
    assert all("--zone=us-west4-a" in words for words in called)


@pytest.mark.parametrize("ends", ["", "exit 3"])
def test_setup_packs_into_a_folder_of_its_own_and_removes_it(pod, tmp_path, ends):
    # Somebody else on this machine knows the name of the slice.
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / "attention_jax-pod.tar.gz").symlink_to(victim)
    body = (
        'for word; do case "$word" in *.XX*) exit 9 ;; */attention_jax.tar.gz) '
        'stat -c "%a" "${word%/*}" && tar -tzf "$word" launch/train.py ;; esac; done'
    )
    done = pod("setup", *WHERE, gcloud=f"#!/usr/bin/env bash\n{body}\n{ends}\n")
    assert (done.returncode, done.stderr) == (3 if ends else 0, "")
    assert done.stdout == "700\nlaunch/train.py\n"
    assert victim.read_text() == "precious"
    assert {path.name for path in tmp_path.iterdir()} == {
        "bin", "victim", "attention_jax-pod.tar.gz"
    }  # fmt: skip


def test_create_asks_for_the_type_and_its_runtime(pod):
    (line,) = pod("create", *WHERE, "--dry-run", *STAGES["create"]).stdout.splitlines()
    assert line == (
        "gcloud compute tpus tpu-vm create pod --accelerator-type=v5litepod-16 "
        "--version=v2-alpha-tpuv5-lite --spot --zone=us-west4-a --project=mine"
    )
    other = pod("create", *WHERE, "--dry-run", "--type=v9-8", "--version=own").stdout
    assert "--accelerator-type=v9-8 --version=own" in other


@pytest.fixture
def project(tmp_path):
    """The project's directory on the worker, where a stand-in for the supervisor waits."""
    folder = tmp_path / "worker" / "attention_jax"
    (folder / "launch").mkdir(parents=True)
    supervisor = folder / "launch" / "supervise.sh"
    supervisor.write_text(SUPERVISOR)
    supervisor.chmod(0o755)
    yield folder
    if (folder / "train.pid").exists():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int((folder / "train.pid").read_text()), signal.SIGKILL)


def test_workers_train_in_a_session_of_their_own_until_told_to_stop(pod, project):
    (project / "extensions" / "0").mkdir(parents=True)
    (project / "extensions" / "1").mkdir()
    # A path of this machine's is not meant for the workers.
    here = {"ATTENTION_JAX_DATA": "/no/such/folder", "ATTENTION_JAX_EXTENSIONS": "/none/either"}
    started = pod("train", *WHERE, "--env=NAMED=a b'c", *TRAINING, gcloud=PLAYING, **here)
    assert started.returncode == 0, started.stderr
    number, log = int((project / "train.pid").read_text()), project / "train.log"
    _wait_for(lambda: "--workdir" in log.read_text())
    assert os.getsid(number) != os.getsid(0)
    words = (".venv/bin/python", "-m", "launch.train", *TRAINING[1:])
    expected = ("auto", ".venv/bin/python", "extensions/0:extensions/1", "a b'c", *words)
    assert log.read_text() == "".join(f"<{word}>" for word in expected) + "\n"
    stopped = pod("stop", *WHERE, gcloud=PLAYING)
    assert (stopped.returncode, stopped.stdout) == (0, ""), stopped.stderr
    _wait_for(lambda: "told to stop" in log.read_text())


def test_a_second_training_is_refused_while_the_first_one_runs(pod, project):
    assert pod("train", *WHERE, *TRAINING, gcloud=PLAYING).returncode == 0
    number = (project / "train.pid").read_text()
    again = pod("train", *WHERE, *TRAINING, gcloud=PLAYING)
    assert again.returncode == 2 and again.stderr.endswith("runs already; stop it first\n")
    assert (project / "train.pid").read_text() == number


def test_stop_leaves_a_program_alone_that_has_the_number_of_a_former_training(pod, project):
    waiting = subprocess.Popen(["sleep", "300"])
    try:
        (project / "train.pid").write_text(str(waiting.pid))
        stopped = pod("stop", *WHERE, gcloud=PLAYING)
        assert stopped.returncode == 0 and stopped.stdout.endswith(": no training runs\n")
        assert waiting.poll() is None
    finally:
        (project / "train.pid").unlink()
        waiting.kill()
        waiting.wait()


def test_parts_of_ones_own_are_copied_to_the_workers(pod, project, tmp_path):
    (project / "extensions" / "old").mkdir(parents=True)
    for name in ("one", "another one"):
        folder = tmp_path / name / "layers" / "mechanisms"
        folder.mkdir(parents=True)
        (folder / f"{name[:3]}.py").touch()
    # In place of the installation, which wants a network.
    playing = PLAYING.replace('exec bash -c "', 'exec bash -c "bash() { :; }; ')
    named = f"{tmp_path / 'one'}:{tmp_path / 'another one'}"
    done = pod("setup", *WHERE, gcloud=playing, ATTENTION_JAX_EXTENSIONS=named)
    assert done.returncode == 0, done.stderr
    copied = {
        str(path.relative_to(project / "extensions"))
        for path in (project / "extensions").rglob("*")
        if path.is_file() or path.name == "old"
    }
    assert copied == {"0/layers/mechanisms/one.py", "1/layers/mechanisms/ano.py"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "expected a stage (create, setup, train, logs, stop, delete), found 'none'"),
        (["crate", *WHERE], "expected a stage"),
        (["delete", "--name=pod"], "--zone: expected a value, found none"),
        (["delete", "--zone=z"], "--name: expected a value, found none"),
        (["delete", "--zone=z", "--name=a; rm"], "--name: expected small letters"),
        (["delete", *WHERE, "--nam=x"], "unexpected option '--nam=x'"),
        (["create", *WHERE], "--type: expected a value"),
        (["create", *WHERE, "--type=v9-8"], "--type: expected one such as v4-32"),
        (["setup", *WHERE, "--bucket=a b"], "--bucket: expected the name of a bucket"),
        (["logs", *WHERE, "--worker=x"], "--worker: expected a number or all"),
        (["logs", *WHERE, "--", "x"], "expected nothing after -- for logs, found 'x'"),
        (["train", *WHERE, "--", "--workdir=x"], "expected -- --config=FILE"),
        (["train", *WHERE], "expected -- --config=FILE"),
        (["train", *WHERE, *TRAINING, "--dry-run"], "--dry-run: expected before --"),
        (["train", *WHERE, *TRAINING, "--env=A=b"], "--env: expected before --"),
        (["train", *WHERE, "--env=A", *TRAINING], "--env: expected NAME=VALUE, found 'A'"),
        (["train", *WHERE, "--env=A;b=c", *TRAINING], "--env: expected NAME=VALUE, found"),
        (["setup", *WHERE, "--env=A=b"], "--env: expected with train only, found with setup"),
        (["setup", *WHERE, "--extensions=tests:/none"], "--extensions: expected folders, found '"),
    ],
)
def test_mistakes_are_one_line_and_run_nothing(pod, tmp_path, arguments, message):
    done = pod(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {message}") and done.stderr.count("\n") == 1
    assert not (tmp_path / "record").exists()


def test_workers_install_what_is_pinned(repository):
    script = (repository / "launch/tpu_vm/setup.sh").read_text().replace("\\\n", " ")
    makefile = (repository / "Makefile").read_text()
    (version,) = re.findall(r"^UV_VERSION := (.*)$", makefile, re.MULTILINE)
    installs = re.findall(r"pip install (.*)", script)
    assert len(installs) == 2
    assert installs[0].split()[-1] == f"uv=={version}"
    hashed = installs[1].split("--require-hashes")[1].split()
    assert hashed == ["-r", "requirements.txt", "-r", "requirements-tpu.txt"]


def _wait_for(what, seconds=300):
    limit = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < limit
        time.sleep(0.05)
