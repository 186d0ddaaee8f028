"""A program ends with the one that started it, even if that is killed; and not before."""

import os
import signal
import subprocess
import sys
import time

from attention_jax.host import parent_death
from attention_jax.host.parent_death import end_with_parent, named_as_parent

SECONDS = 30.0
# Says that it lives, and how it ends.
_CHILD = """
import os, signal, sys, time
from attention_jax.host.parent_death import end_with_parent
def told(number, frame):
    os.write(1, b"told to stop\\n")
    sys.exit()
signal.signal(signal.SIGTERM, told)
end_with_parent()
os.write(1, b"begun\\n")
time.sleep(60)
"""
_PARENT = """
import os, subprocess, sys, time
from attention_jax.host.parent_death import named_as_parent
subprocess.Popen(
    [sys.executable, "-c", sys.argv[1]], env={**os.environ, **named_as_parent()},
    start_new_session=True,
)
time.sleep(60)
"""


def test_a_child_is_told_to_stop_when_its_parent_is_killed():
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, _CHILD], stdout=subprocess.PIPE, text=True
    )
    with parent:
        try:
            assert parent.stdout.readline() == "begun\n"
        finally:
            parent.kill()
        # The child's end of the pipe closes with it.
        assert parent.stdout.read() == "told to stop\n"


def test_a_child_whose_parent_lives_goes_on(monkeypatch):
    killed = []
    monkeypatch.setattr(parent_death, "_LOOK_EVERY_SECONDS", 0.01)
    monkeypatch.setattr(parent_death.os, "kill", lambda *arguments: killed.append(arguments))
    parents = iter([41, 41, 41])
    monkeypatch.setattr(parent_death.os, "getppid", lambda: next(parents, 1))
    monkeypatch.setenv("ATTENTION_JAX_PARENT", "41")
    end_with_parent()
    assert "ATTENTION_JAX_PARENT" not in os.environ  # it is not the parent of what we start
    deadline = time.monotonic() + SECONDS
    while not killed and time.monotonic() < deadline:
        time.sleep(0.01)
    assert killed == [(os.getpid(), signal.SIGTERM)] and next(parents, None) is None


def test_who_was_not_asked_looks_at_nothing(monkeypatch):
    def look():
        raise AssertionError("looked")

    monkeypatch.setattr(parent_death.os, "getppid", look)
    monkeypatch.setattr(parent_death.os, "environ", {})
    end_with_parent()
    assert named_as_parent() == {"ATTENTION_JAX_PARENT": str(os.getpid())}
