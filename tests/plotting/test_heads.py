"""The grid of heads."""

import pytest

from attention_jax.plotting.heads import head_grid


def test_every_value_is_drawn_where_its_head_is():
    figure = head_grid({"aer": {"a": [1.0, 2.5], "b": [3.0]}, "entropy": {"a": [0.25, 0.5]}})
    upper, lower = figure.axes
    assert {text.get_text() for text in upper.texts} == {"1.00", "2.50", "3.00"}
    assert [label.get_text() for label in upper.get_yticklabels()] == ["a", "b"]
    assert upper.get_title("left") == "aer" and len(lower.texts) == 2


@pytest.mark.parametrize(
    ("values", "shown"),
    [([0.0, 55.25], ["0.00", "55.25"]), ([-0.0007, 0.0019], ["-0.0007", "0.0019"]),
     ([-0.001, 0.5], ["0.00", "0.50"]), ([0.1, 0.16], ["0.100", "0.160"])],
)  # fmt: skip
def test_numbers_have_the_digits_in_which_they_differ(values, shown):
    (axes,) = head_grid({"nll_without": {"a": values}}).axes
    assert [text.get_text() for text in axes.texts] == shown


def test_one_value_can_be_drawn():
    assert head_grid({"aer": {"a": [1.0]}}).axes


def test_nothing_is_an_error():
    with pytest.raises(ValueError, match="expected at least one measure, found none"):
        head_grid({})
