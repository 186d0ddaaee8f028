"""Systems as lines of dots."""

import pytest

from attention_jax.plotting.figure import save_figure
from attention_jax.plotting.score_dots import Score, score_dots


def test_every_system_has_its_line_in_every_panel(tmp_path):
    figure = score_dots(
        {
            "BLEU": {
                "fed": {"base": Score(20.0, 0.5), "$dot$": Score(30.0, 0.0)},
                "not fed": {"$dot$": Score(28.0, 1.0)},
            },
            "AER": {"not fed": {"$dot$": Score(40.0, 1.0)}},
        },
        "scores",
        reference="base",
    )
    bleu, aer = figure.axes
    assert [label.get_text() for label in bleu.get_yticklabels()] == ["base", "$dot$"]
    assert (bleu.get_xlabel(), aer.get_xlabel()) == ("BLEU", "AER")
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend == ["fed", "not fed"]
    fed, unfed = (bar.lines[0] for bar in bleu.containers)
    assert list(fed.get_xdata()) == [20.0, 30.0] and list(unfed.get_xdata()) == [28.0]
    # Both dots of a line are near its number, beside one another, and alike in all panels.
    assert fed.get_ydata()[1] < 1 < unfed.get_ydata()[0]
    [alone] = aer.containers
    assert list(alone.lines[0].get_ydata()) == list(unfed.get_ydata())
    assert alone.lines[0].get_color() == unfed.get_color() != fed.get_color()
    # The line of the reference, only where there is one.
    assert [list(line.get_xdata()) for line in bleu.lines if line.get_linestyle() == ":"] == [
        [20.0, 20.0]
    ]
    assert not [line for line in aer.lines if line.get_linestyle() == ":"]
    save_figure(figure, tmp_path / "dots.png")


def test_a_legend_of_long_names_is_within_the_figure(tmp_path):
    names = [f"series number {number}, by a long name" for number in range(4)]
    figure = score_dots({"BLEU": {name: {"base": Score(1.0, 0.0)} for name in names}})
    save_figure(figure, tmp_path / "dots.png")
    (legend,) = figure.legends
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 and box.x1 <= whole.x1
    assert [text.get_text() for text in legend.get_texts()] == names


def test_a_single_series_needs_no_legend():
    assert not score_dots({"BLEU": {"": {"base": Score(1.0, 0.0)}}}).legends


def test_nothing_to_draw_is_refused():
    with pytest.raises(ValueError, match="at least one system"):
        score_dots({"BLEU": {"fed": {}}})
