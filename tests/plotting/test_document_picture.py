import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from attention_jax.plotting.document_page import ShownDocument, ShownSentence
from attention_jax.plotting.document_picture import COLUMNS, document_picture
from attention_jax.plotting.figure import ATTENTION, TRUTH

LONG = ShownSentence(["word"] * 60, np.full(60, 0.5), 0.2)
DOCUMENT = ShownDocument(
    "first", "pos", "neg",
    [ShownSentence(["not", "good"], np.array([0.2, 0.8]), 0.8, (False, True)), LONG],
)  # fmt: skip


def _drawn(figure):
    (axes,) = figure.axes
    boxes = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    return axes, {text.get_text(): text for text in axes.texts}, boxes


def test_words_are_shaded_by_weight_and_sentences_have_bars():
    axes, texts, boxes = _drawn(document_picture([DOCUMENT]))
    assert "first: pos, not neg" in texts
    bar, first, second = boxes[:3]
    np.testing.assert_allclose([first.get_alpha(), second.get_alpha()], [0.15, 0.6])
    assert all(box.get_facecolor()[:3] == to_rgb(ATTENTION) for box in boxes)
    shares = [box.get_width() for box in boxes if box.get_height() == bar.get_height()]
    np.testing.assert_allclose(shares[1] / shares[0], 0.25)
    (underlined,) = axes.collections  # one word is marked
    np.testing.assert_allclose(underlined.get_color()[0][:3], to_rgb(TRUTH))
    start = texts["good"].get_position()[0]
    assert underlined.get_segments()[0][:, 0].tolist() == [start, start + 4]


def test_long_sentences_are_broken_into_lines():
    axes, _, boxes = _drawn(document_picture([DOCUMENT, DOCUMENT]))
    assert max(box.get_x() + box.get_width() for box in boxes) <= COLUMNS + 0.5
    words = [text.get_position() for text in axes.texts if text.get_text() == "word"]
    assert len(words) == 120 and len(set(words)) == 120
    assert len({row for _, row in words}) == 6  # three lines in each document


def test_a_document_without_words_and_none_at_all():
    document_picture([ShownDocument("1", "a", "a", [ShownSentence([], np.zeros(0), 0.0)])])
    with pytest.raises(ValueError, match="expected at least one document"):
        document_picture([])
