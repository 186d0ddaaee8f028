import pytest

from attention_jax.evaluation.seeds import corpus_score
from experiments.kit.measure_tables import contrasts, differences, overview
from tests.experiments.measured import system

LABELS = {"base": "the base", "good": "a good one", "same": "much the same"}


@pytest.fixture
def found(numpy_rng):
    return {
        "base": system(numpy_rng, match=0.4, repeated=0.2),
        "good": system(numpy_rng, match=0.8, repeated=0.2),
        "same": system(numpy_rng, match=0.4),
    }


def rows_of(table):
    return {line.split(" | ")[0].strip("| "): line for line in table.splitlines()[2:]}


def test_overview_has_means_and_stars_against_the_first(found):
    rows = rows_of(overview(found, LABELS, ("match", "repeated")))
    assert list(rows) == list(LABELS.values())
    mean = sum(corpus_score(run["match"]) for run in found["good"]) / 3
    assert f"{mean:.2f} ±" in rows["a good one"]
    assert "**" in rows["a good one"]
    assert "*" not in rows["the base"] and "*" not in rows["much the same"]


def test_overview_leaves_a_gap_where_a_measure_is_missing(found):
    table = overview(found, LABELS, ("match", "repeated"))
    assert rows_of(table)["much the same"].endswith("| – |")
    assert "match ↑" in table and "repeated bigrams ↓" in table


def test_differences_compare_with_the_base(found):
    rows = rows_of(differences(found, LABELS, "match"))
    assert set(rows) == {"a good one", "much the same"}
    assert "| +" in rows["a good one"] and "| 9 of 9 |" in rows["a good one"]
    assert list(rows_of(differences(found, LABELS, "repeated"))) == ["a good one"]
    rows = rows_of(differences(found, LABELS, "match", base="good"))
    assert "| -" in rows["the base"] and "| 0 of 9 |" in rows["the base"]


def test_contrasts_compare_pairs_in_their_order_and_leave_gaps(found):
    pairs = {"up": ("base", "good"), "down": ("good", "base"), "half": ("base", "same"),
             "gone": ("base", "missing")}  # fmt: skip
    rows = rows_of(contrasts(found, "pair", pairs, ("match", "repeated")))
    assert list(rows) == ["up", "down", "half"]
    assert rows["up"].startswith("| up | +") and rows["down"].startswith("| down | -")
    difference = [
        sum(corpus_score(run["match"]) for run in found[name]) / 3 for name in ("base", "good")
    ]
    assert rows["up"].split(" | ")[1] == f"{difference[1] - difference[0]:+.2f}"
    assert rows["half"].endswith("| – | – | – |") and not rows["up"].endswith("– |")
