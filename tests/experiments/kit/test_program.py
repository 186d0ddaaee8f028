import functools
from types import SimpleNamespace

import pytest
from absl import flags

from attention_jax.errors import UserError
from attention_jax.sweeps import archive
from attention_jax.sweeps.archive import Record
from attention_jax.sweeps.grid import Grid
from experiments import aligner_error_rates as teachers
from experiments import dropped_words as untranslated
from experiments.kit import program


def grid(smoke=False):
    return "tiny" if smoke else "small"


def full_grid():
    return "full"


def test_chosen_grid_is_the_one_that_was_asked_for():
    assert program.chosen_grid(grid, full_grid, full=False) == "small"
    assert program.chosen_grid(grid, full_grid, full=False, smoke=True) == "tiny"
    assert program.chosen_grid(grid, full_grid, full=True) == "full"


def test_full_size_is_refused_where_there_is_none_or_with_smoke():
    with pytest.raises(UserError, match="--full: expected an experiment with a full size"):
        program.chosen_grid(grid, None, full=True)
    with pytest.raises(UserError, match="--full: expected it without --smoke"):
        program.chosen_grid(grid, full_grid, full=True, smoke=True)


@pytest.fixture
def defined(monkeypatch):
    """The flags that are defined from now on."""
    values = flags.FlagValues()
    kinds = ("DEFINE_bool", "DEFINE_integer", "DEFINE_list", "DEFINE_string")
    define = {kind: functools.partial(getattr(flags, kind), flag_values=values) for kind in kinds}
    monkeypatch.setattr(program, "flags", SimpleNamespace(**define))
    return values


def test_programs_that_only_read_a_grid_refuse_flags_of_running_it(defined):
    program.define_grid_flags([])
    assert sorted(defined) == ["full", "out"]
    with pytest.raises(flags.UnrecognizedFlagError, match="jobs"):
        defined(["program", "--jobs=2"])


def test_no_program_takes_flags_of_a_module_that_it_imports(defined):
    program.define_flags([])
    for module in (teachers, untranslated):
        assert module.program is program
    assert {"full", "jobs", "list", "tables_only"} <= set(defined) - set(flags.FLAGS)


def make_grid(cells, seeds):
    return Grid(name="trial", config="config.py", cells=cells, seeds=seeds)


def test_records_of_cells_are_forgotten_and_others_stay(tmp_path):
    runs = make_grid({"a": {}, "b": {}}, (0, 1)).runs(tmp_path, tmp_path)
    archive.add(runs[0].records, [Record(run.cell, run.seed, {}, {}, {}, {}) for run in runs[1:]])
    program.forget([run for run in runs if run.cell == "a"])
    assert [run.name for run in runs if run.is_finished()] == ["b/seed0", "b/seed1"]
    program.forget(runs[:1])


def test_a_cell_that_has_changed_since_is_told(tmp_path):
    grid = make_grid({"a": {"model.new": 3}}, (0,))
    (run,) = grid.runs(tmp_path, tmp_path)
    archive.add(run.records, [Record("a", 0, {"model.old": 3, "seed": 0}, {}, {}, {})])
    assert program._note(run) == (
        "a: recorded with model.new None, now 3; model.old 3, now None; --forget=a would run it "
        "again"
    )
    archive.add(run.records, [Record("a", 0, run.overrides, {}, {}, {})])
    assert program._note(run) == ""
