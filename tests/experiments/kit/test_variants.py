"""Variants: crossed grids, their tiny forms, and groups of their runs."""

from experiments.kit.variants import (
    MADE_UP,
    SEEDS,
    SMOKE,
    Variant,
    by_cell,
    by_condition,
    crossed,
    grid_of,
    label_of,
)

CORPORA = {
    "small": Variant("Small", {"data.max_train_examples": 9, "seed": 1}),
    "large": Variant("Large", argument="large"),
}
SYSTEMS = {"plain": Variant("plain"), "other": Variant("other", {"seed": 2}, config="elsewhere")}


def test_a_system_is_tried_under_every_condition():
    grid = grid_of("name", crossed(CORPORA, SYSTEMS), "here:usual", curves=("nll",))
    assert [*grid.cells] == ["small.plain", "small.other", "large.plain", "large.other"]
    assert grid.cells["small.other"] == {"data.max_train_examples": 9, "seed": 2}
    assert grid.config == {
        "small.plain": "configs/here.py:usual", "small.other": "configs/elsewhere.py:usual",
        "large.plain": "configs/here.py:large", "large.other": "configs/elsewhere.py:large",
    }  # fmt: skip
    assert grid.seeds == SEEDS and grid.name == "name"
    assert grid.curves == ("nll",) and not grid.overrides


def test_a_tiny_grid_has_made_up_data_and_one_seed():
    grid = grid_of("name", crossed(MADE_UP, SYSTEMS), "here:usual", True, overrides={"a": 1})
    assert [*grid.cells] == ["smoke.plain", "smoke.other"] and len(grid.seeds) == 1
    assert grid.name == "name_smoke" and grid.overrides == {**SMOKE, "a": 1}
    assert grid.config["smoke.other"] == "configs/elsewhere.py:smoke"


def test_runs_are_grouped_in_the_order_of_the_grid(tmp_path):
    grid = grid_of("name", crossed(CORPORA, SYSTEMS), "here:usual")
    runs = grid.runs(tmp_path, tmp_path)
    finished = [run for run in reversed(runs) if run.name != "small.plain/seed0"]
    assert [*by_cell(finished)] == [*grid.cells]
    found = by_condition(finished)
    assert [*found] == ["small", "large"] and [*found["small"]] == ["plain", "other"]
    assert [run.seed for run in found["small"]["plain"]] == [2, 1]
    assert by_condition([]) == {}


def test_a_name_without_a_label_is_its_own():
    assert label_of(CORPORA, "small") == "Small" and label_of(CORPORA, "smoke") == "smoke"
