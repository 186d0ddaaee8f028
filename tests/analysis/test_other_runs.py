"""Other runs are found where the command line says."""

import pytest

from attention_jax.analysis import other_runs
from attention_jax.analysis.other_runs import OtherRun
from attention_jax.errors import DataError, UserError


def test_a_run_may_have_the_name_of_a_step(tmp_path, monkeypatch):
    loaded = []

    def load(path, step, moved):
        loaded.append((path, step))
        raise DataError("enough")

    monkeypatch.setattr(other_runs, "load_run", load)
    run = tmp_path / "run@5"
    for place in (run, f"{run}@7", tmp_path / "other@6"):
        run.mkdir(exist_ok=True)
        with pytest.raises(UserError, match="--against: enough"):
            OtherRun.load("--against", str(place))
    assert loaded == [(str(run), None), (str(run), 7), (str(tmp_path / "other"), 6)]
