"""Systems as points of two scores."""

import pytest

from attention_jax.plotting.figure import save_figure
from attention_jax.plotting.tradeoff import Point, tradeoff


def test_tradeoff_draws_every_system_in_the_colour_of_its_group(tmp_path):
    figure = tradeoff(
        {
            "base": Point(40.0, 30.0, 1.0, 0.3, "neither"),
            "$coverage$": Point(38.0, 30.5, 1.0, 0.3, "coverage"),
            "neural": Point(36.0, 31.0, 0.0, 0.0, "coverage"),
        },
        "AER",
        "BLEU",
        "all pairs",
    )
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["base", "$coverage$", "neural"]
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["neither", "coverage"]
    assert axes.texts[1].get_color() == axes.texts[2].get_color() != axes.texts[0].get_color()
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("AER", "BLEU")
    save_figure(figure, tmp_path / "tradeoff.png")


def test_tradeoff_needs_something_to_draw():
    with pytest.raises(ValueError, match="at least one"):
        tradeoff({}, "AER", "BLEU")
