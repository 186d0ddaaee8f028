"""Programs are called in their usage as they were called on the command line."""

import pytest

from attention_jax.host import program_names

TEXT = "usage: python -m launch.compile_check\n  launch/local.sh 2 python -m launch.train; launch.x"


@pytest.mark.parametrize("program", ["launch/train.py", "train", "/usr/bin/pytest"])
def test_the_clone_has_its_own_names(monkeypatch, program):
    monkeypatch.setattr("sys.argv", [program])
    assert program_names.usage(TEXT) == TEXT


def test_installed_programs_have_theirs(monkeypatch):
    monkeypatch.setattr("sys.argv", ["/home/me/.venv/bin/attention-align"])
    assert program_names.usage(TEXT) == (
        "usage: attention-compile-check\n  attention-local 2 attention-train; attention-x"
    )


def test_programs_start_others_of_their_kind(monkeypatch):
    monkeypatch.setattr("sys.argv", ["launch/sweep.py"])
    assert program_names.program("train") == ["-m", "launch.train"]
    monkeypatch.setattr("sys.argv", ["/home/me/.venv/bin/attention-sweep"])
    assert program_names.program("train") == ["/home/me/.venv/bin/attention-train"]
