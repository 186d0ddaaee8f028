"""Picture of documents: words shaded by their weights, as the page of documents has them.

The darker a word, the larger its share of its sentence, relative to the largest there; the longer
the bar before a sentence, the larger its share of the document. Marked words are underlined.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from attention_jax.plotting.document_page import DARKEST, ShownDocument, ShownSentence
from attention_jax.plotting.figure import (
    ATTENTION,
    INK,
    TRUTH,
    new_figure,
    printable,
    text_style,
    text_width,
)

COLUMNS = 110  # characters of a line
SIZE = 8.0  # of type, in points
LINE_HEIGHT = 0.175  # inches
_BAR = 7  # characters that bars take, before the words


def document_picture(documents: Sequence[ShownDocument]) -> Figure:
    """Draws documents one below the other, each under its name and the label that was told.

    Raises:
      ValueError: If there are none.
    """
    if not documents:
        raise ValueError("expected at least one document, found none")
    placed = [[list(_lines(one.words)) for one in each.sentences] for each in documents]
    # A line for the heading of each document, and one below it.
    number = sum(2 + sum(map(len, sentences)) for sentences in placed)
    width = text_width(["x" * COLUMNS], SIZE)
    figure = new_figure(width, number * LINE_HEIGHT)
    axes = figure.add_axes((0.01, 0.0, 0.98, 1.0), xlim=(0, COLUMNS), ylim=(number, 0))
    axes.set_axis_off()
    row = 0
    for document, sentences in zip(documents, placed, strict=True):
        right = "" if document.told == document.label else f", not {document.label}"
        _write(axes, 0, row, f"{document.key}: {document.told}{right}", fontweight="bold")
        row += 1
        most = max((one.share for one in document.sentences), default=0.0) or 1.0
        for sentence, lines in zip(document.sentences, sentences, strict=True):
            _draw(axes, row, sentence, lines, sentence.share / most)
            row += len(lines)
        row += 1
    return figure


def _lines(words: Sequence[str]) -> Iterator[list[tuple[int, int, str]]]:
    """Breaks a sentence into lines of (number of the word, its column, what is shown of it)."""
    line, column = [], _BAR
    for number, word in enumerate(words):
        shown = printable(word)[: COLUMNS - _BAR]
        if line and column + len(shown) > COLUMNS:
            yield line
            line, column = [], _BAR
        line.append((number, column, shown))
        column += len(shown) + 1
    yield line


def _draw(
    axes: Axes, row: int, one: ShownSentence, lines: Sequence[list[tuple[int, int, str]]],
    share: float,
) -> None:  # fmt: skip
    weights = np.asarray(one.weights, float)
    largest = float(weights.max(initial=0.0)) or 1.0
    length = (_BAR - 1.5) * share
    axes.add_patch(Rectangle((_BAR - 1 - length, row + 0.3), length, 0.4, color=ATTENTION))
    for below, line in enumerate(lines):
        for number, column, shown in line:
            top, alpha = row + below, DARKEST * float(weights[number] / largest)
            axes.add_patch(Rectangle(
                (column - 0.2, top + 0.08), len(shown) + 0.4, 0.84, color=ATTENTION, alpha=alpha,
                linewidth=0,
            ))  # fmt: skip
            _write(axes, column, top, shown)
            if number < len(one.marked) and one.marked[number]:
                axes.hlines(top + 0.92, column, column + len(shown), color=TRUTH, linewidth=1)


def _write(axes: Axes, column: float, row: float, text: str, **more: object) -> None:
    style = {**text_style(SIZE), "fontfamily": ["DejaVu Sans Mono"], "color": INK}
    axes.text(column, row + 0.5, text, va="center", **{**style, **more})
