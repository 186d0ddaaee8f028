"""The grid of heads."""

import pytest

from attention_jax.plotting.heads import head_grid


def test_every_value_is_drawn_where_its_head_is():
    figure = head_grid({"aer": {"a": [1.0, 2.5], "b": [3.0]}, "entropy": {"a": [0.25, 0.5]}})
    upper, lower = figure.axes
    assert {text.get_text() for text in upper.texts} == {"1.00", "2.50", "3.00"}
    assert [label.get_text() for label in upper.get_yticklabels()] == ["a", "b"]
    assert upper.get_title("left") == "aer" and len(lower.texts) == 2


def test_one_value_can_be_drawn():
    assert head_grid({"aer": {"a": [1.0]}}).axes


def test_nothing_is_an_error():
    with pytest.raises(ValueError, match="expected at least one measure, found none"):
        head_grid({})
