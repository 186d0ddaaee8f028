"""`launch/tpu_vm/pod.sh` with a gcloud that records its calls, and one that plays the workers."""

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
    "setup": ("--bucket=gs://my-runs",),
    "train": TRAINING,
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
  case "$argument" in --command=*) cd "$WORKER" && exec bash -c "${argument#--command=}" ;; esac
done
"""
SUPERVISOR = """#!/usr/bin/env bash
trap 'echo told to stop; exit 75' TERM
printf '<%s>' "$ATTENTION_JAX_DISTRIBUTED" "$PYTHON" "$@"; echo
for _ in $(seq 600); do sleep 0.1; done
"""


@pytest.fixture
def pod(repository, tmp_path):
    """Runs the script with a gcloud of a few lines first on the PATH."""

    def run(*arguments, gcloud=RECORDING):
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
    assert others == (["git"] if stage == "setup" else [])
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


def test_workers_train_in_a_session_of_their_own_until_told_to_stop(pod, tmp_path):
    project = tmp_path / "worker" / "attention_jax"
    (project / "launch").mkdir(parents=True)
    supervisor = project / "launch" / "supervise.sh"
    supervisor.write_text(SUPERVISOR)
    supervisor.chmod(0o755)
    started = pod("train", *WHERE, *TRAINING, gcloud=PLAYING)
    assert started.returncode == 0, started.stderr
    number = int((project / "train.pid").read_text())
    try:
        _wait_for(lambda: "--workdir" in (project / "train.log").read_text())
        assert os.getsid(number) != os.getsid(0)
        log = (project / "train.log").read_text()
        words = (".venv/bin/python", "-m", "launch.train", *TRAINING[1:])
        expected = ("auto", ".venv/bin/python", *words)
        assert log == "".join(f"<{word}>" for word in expected) + "\n"
        stopped = pod("stop", *WHERE, gcloud=PLAYING)
        assert stopped.returncode == 0, stopped.stderr
        _wait_for(lambda: "told to stop" in (project / "train.log").read_text())
    finally:
        try:
            os.killpg(number, signal.SIGKILL)
        except ProcessLookupError:
            pass


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
