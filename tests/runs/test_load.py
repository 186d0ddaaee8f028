"""Which parameters of a run are evaluated, from checkpoints that are no files."""

import types

import pytest

from attention_jax.errors import CheckpointError
from attention_jax.runs import load as trained
from attention_jax.runs.checkpoints.checkpoint import Checkpointer
from attention_jax.runs.checkpoints.reading import Checkpoint
from attention_jax.runs.run_directory import RunDirectory
from tests.training.tiny import tiny_config


class _Kept(Checkpointer):
    """Steps 4, 8 and 12, of which some are damaged; parameters and averages are named."""

    def __init__(self, path, best, damaged=()):
        super().__init__(path)
        self._best, self._damaged = best, damaged

    def restore(self, like, step=None, *, exact=False):
        """Returns the step, or the newest."""
        step = step or 12
        if step in self._damaged:
            raise CheckpointError(f"step {step} is damaged")
        state = types.SimpleNamespace(params={"last": step}, average={"average": step})
        return Checkpoint(step, state, {}, {}, {"best_step": self._best})


@pytest.fixture
def chosen(tmp_path, monkeypatch):
    """Asks for the parameters that are evaluated."""
    monkeypatch.setattr(trained, "check_origin", lambda *_: None)

    def choose(averaging, **kept):
        config = tiny_config(averaging={"name": averaging})
        checkpointer = _Kept(tmp_path, **kept)
        directory = RunDirectory(tmp_path)
        checkpoint, params = trained.best_params(checkpointer, None, config, directory)
        return checkpoint.step, params

    return choose


@pytest.mark.parametrize(("averaging", "name"), [("none", "last"), ("ema", "average")])
def test_the_best_step_is_evaluated_and_not_the_newest(chosen, averaging, name):
    assert chosen(averaging, best=4) == (4, {name: 4})
    assert chosen(averaging, best=12) == (12, {name: 12})


def test_the_newest_step_is_evaluated_where_none_is_best(chosen):
    assert chosen("none", best=None) == (12, {"last": 12})


def test_a_best_step_that_is_damaged_is_told(chosen, capsys):
    assert chosen("none", best=4, damaged=(4,)) == (12, {"last": 12})
    assert capsys.readouterr().err.startswith("warning: the best step cannot be evaluated, step 12")
