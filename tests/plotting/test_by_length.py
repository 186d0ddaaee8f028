"""Curves of BLEU by source length."""

import numpy as np
import pytest

from attention_jax.evaluation.by_length import LengthBucket
from attention_jax.plotting.by_length import bleu_by_length_curves
from attention_jax.plotting.figure import save_figure


def bucket(first, last, sentences, bleu):
    return LengthBucket(first, last, sentences, bleu, bleu - 1, bleu + 1)


def test_bleu_by_length_curves_draw_each_system_over_all_lengths(tmp_path):
    figure = bleu_by_length_curves(
        {
            "attention": [bucket(1, 10, 1200, 30.0), bucket(11, 20, 50, 28.0)],
            "fixed $vector$": [bucket(11, 20, 50, 12.0), bucket(21, None, 7, 5.0)],
        },
        "by length",
    )
    axes = figure.axes[0]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["1-10\n1,200", "11-20\n50", ">20\n7"]
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), [30.0, 28.0, np.nan])
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), [np.nan, 12.0, 5.0])
    assert len(axes.collections) == 2
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend == ["attention", "fixed $vector$"]
    save_figure(figure, tmp_path / "lengths.png")


def test_bleu_by_length_curves_need_something_to_draw():
    with pytest.raises(ValueError, match="at least one"):
        bleu_by_length_curves({"empty": []})
