"""Markdown of numbers with their uncertainty."""

import pytest

from attention_jax.evaluation.seeds import SeedMean
from attention_jax.sweeps import tables


def test_a_table_has_a_rule_under_its_headings():
    assert tables.table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |"


def test_a_single_seed_has_no_deviation():
    assert tables.with_deviation(SeedMean(1.5, float("nan"), 1.0, 2.0, 80)) == "1.50"
    assert tables.with_deviation(SeedMean(1.5, 0.25, 1.0, 2.0, 80)) == "1.50 ± 0.25"


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0, 3.0], "2.00 ± 1.00"),
        ([1.0], "1.00"),
        ([1.0, None, 3.0], "2.00 ± 1.41 (2 of 3)"),
        ([None], tables.NOTHING),
    ],
)
def test_spread_says_how_many_values_are_known(values, text):
    assert tables.spread(values) == text


def test_a_probability_is_no_less_than_resamples_can_show():
    assert tables.probability(1 / 1001, 1000) == "< 0.002"
    assert tables.probability(0.04321, 1000) == "0.043"
