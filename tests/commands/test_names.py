"""Programs are called in their usage as they were called on the command line."""

import pytest

from attention_jax.commands import names

TEXT = "usage: python -m launch.compile_check\n  launch/local.sh 2 python -m launch.train; launch.x"


@pytest.mark.parametrize("program", ["launch/train.py", "train", "/usr/bin/pytest"])
def test_the_clone_has_its_own_names(monkeypatch, program):
    monkeypatch.setattr("sys.argv", [program])
    assert names.usage(TEXT) == TEXT


def test_installed_programs_have_theirs(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/home/me/.venv/bin/attention-align"])
    assert names.usage(TEXT) == (
        "usage: attention-compile-check\n  attention-local 2 attention-train; attention-x"
    )


def test_programs_start_others_of_their_kind(monkeypatch):
    monkeypatch.setattr("sys.argv", ["launch/sweep.py"])
    assert names.program("train") == ["-m", "launch.train"]
    monkeypatch.setattr("sys.argv", ["/home/me/.venv/bin/attention-sweep"])
    assert names.program("train") == ["/home/me/.venv/bin/attention-train"]
