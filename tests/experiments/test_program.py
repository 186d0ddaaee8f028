from types import SimpleNamespace

import pytest

from attention_jax.errors import UserError
from experiments import program


@pytest.fixture
def asked(monkeypatch):
    """Sets what the command line asks for."""

    def ask(full=False, smoke=False):
        monkeypatch.setattr(program, "_FULL", SimpleNamespace(value=full))
        monkeypatch.setattr(program, "_SMOKE", SimpleNamespace(value=smoke))

    return ask


def grid(smoke=False):
    return "tiny" if smoke else "small"


def test_chosen_grid_is_the_one_that_was_asked_for(asked):
    asked()
    assert program.chosen_grid(grid, lambda: "full") == "small"
    asked(smoke=True)
    assert program.chosen_grid(grid, lambda: "full") == "tiny"
    asked(full=True)
    assert program.chosen_grid(grid, lambda: "full") == "full"


def test_full_size_is_refused_where_there_is_none_or_with_smoke(asked):
    asked(full=True)
    with pytest.raises(UserError, match="--full: expected an experiment with a full size"):
        program.chosen_grid(grid, None)
    asked(full=True, smoke=True)
    with pytest.raises(UserError, match="--full: expected it without --smoke"):
        program.chosen_grid(grid, lambda: "full")
