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
    labels = {text.get_text(): text for text in axes.texts if text.get_text()}
    assert labels.keys() == {"base", "$coverage$", "neural"}
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["neither", "coverage"]
    colours = {name: label.get_color() for name, label in labels.items()}
    assert colours["neural"] == colours["$coverage$"] != colours["base"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("AER", "BLEU")
    save_figure(figure, tmp_path / "tradeoff.png")


def test_tradeoff_needs_something_to_draw():
    with pytest.raises(ValueError, match="at least one"):
        tradeoff({}, "AER", "BLEU")
