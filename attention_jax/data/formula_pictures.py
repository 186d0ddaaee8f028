"""Formulas as pictures: markup rendered by Matplotlib, with the place of every symbol."""

import functools
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attention_jax.data.formula_grammar import Formula
from attention_jax.data.pictures import Picture
from attention_jax.errors import DataError

MARGIN = 2  # pixels around a formula
SIZE = 14.0  # of its letters, in pixels
_WIDEST = 2000
_AFTER_SCRIPT = re.compile(r"(?<=[\^_])\s+")


class TooHighError(ValueError):
    """A formula that is higher than its picture."""


def render(markup: str, height: int, cell: int) -> tuple[Picture, Float[np.ndarray, "P 4"]]:
    """Draws a formula in black on white, in the middle of a picture whose width follows from it.

    Args:
      markup: Symbols of mathtext, without the dollar signs.
      height: Of the picture, in pixels.
      cell: The picture is a whole number of them wide.

    Returns:
      The picture `H W 1`; and left, top, right and bottom of the glyphs and then the bars, each in
      the order in which the renderer ships them.

    Raises:
      ValueError: If it is no markup, or nothing; `TooHighError` if it does not fit.
    """
    from matplotlib.backends.backend_agg import RendererAgg
    from matplotlib.path import Path
    from matplotlib.transforms import Affine2D

    outlines = _outlines(markup)
    if not outlines:
        raise ValueError("expected something to draw, found nothing")
    corners = np.array([[vertices.min(0), vertices.max(0)] for vertices, _ in outlines])
    (left, bottom), (right, top) = corners[:, 0].min(0), corners[:, 1].max(0)
    if top - bottom > height - 2 * MARGIN:
        raise TooHighError(f"expected a formula of {height} pixels, found {top - bottom:.0f}")
    width = -(-int(np.ceil(right - left) + 2 * MARGIN) // cell) * cell
    if width > _WIDEST:
        raise ValueError(f"expected a formula of at most {_WIDEST} pixels, found {width}")
    shift = np.array([MARGIN - left, round((height - top - bottom) / 2)])
    renderer = RendererAgg(width, height, 72)
    context = renderer.new_gc()
    context.set_linewidth(0)
    for vertices, codes in outlines:
        path = Path(vertices + shift, codes)
        renderer.draw_path(context, path, Affine2D(), (0.0, 0.0, 0.0))
    opaque = np.asarray(renderer.buffer_rgba())[..., 3:]
    # From the bottom to the top, where pictures count from.
    corners = corners + shift
    boxes = np.stack(
        [corners[:, 0, 0], height - corners[:, 1, 1], corners[:, 1, 0], height - corners[:, 0, 1]],
        axis=-1,
    )
    return 255 - opaque, boxes


def gold_boxes(formula: Formula, parts: Float[np.ndarray, "P 4"]) -> Float[np.ndarray, "T 4"]:
    """Returns the rectangle of each symbol; zeros for those that leave no trace, such as braces.

    Raises:
      DataError: If the renderer has drawn other parts than the formula has.
    """
    owners = [*formula.glyphs, *formula.bars]
    if len(owners) != len(parts):
        raise DataError(
            f"formula {formula.markup!r}: expected {len(owners)} glyphs and bars of the renderer, "
            f"found {len(parts)}"
        )
    boxes = np.zeros((len(formula.symbols), 4), np.float32)
    seen: set[int] = set()
    for owner, part in zip(owners, parts, strict=True):
        if owner in seen:  # a root is a glyph and a bar
            before = boxes[owner]
            part = [*np.minimum(before[:2], part[:2]), *np.maximum(before[2:], part[2:])]
        boxes[owner] = part
        seen.add(owner)
    return boxes


def same_picture(one: str, other: str, height: int, cell: int) -> bool:
    """Whether two markups give the same picture; one that gives none is like no other."""
    if one == other:
        return True
    try:
        pictures = [render(markup, height, cell)[0] for markup in (one, other)]
    except (ValueError, RecursionError):  # of roots in roots, which the parser goes down into
        return False
    return np.array_equal(*pictures)


def _outlines(markup: str) -> Sequence[tuple[np.ndarray, np.ndarray]]:
    """Returns vertices and codes of every glyph, then of every bar, in pixels."""
    maker, prop = _maker()
    # To mathtext a space after `^` or `_` is what is raised or lowered.
    glyphs, shapes, bars = maker.get_glyphs_mathtext(prop, f"${_AFTER_SCRIPT.sub('', markup)}$")
    unit = SIZE / maker.FONT_SCALE
    found = []
    for shape, x, y, size in glyphs:
        vertices, codes = shapes[shape]
        if len(vertices):
            found.append((unit * (size * np.asarray(vertices) + [x, y]), np.asarray(codes)))
    # The last vertex of a bar closes it, and stands nowhere.
    for corners, codes in bars:
        vertices = unit * np.asarray([*corners[:-1], corners[0]])
        found.append((vertices, np.asarray(codes)))
    return found


@functools.cache
def _maker() -> tuple[Any, Any]:
    """Returns what makes outlines of markup, and its font, which Matplotlib brings."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import TextToPath

    return TextToPath(), FontProperties(math_fontfamily="cm", size=SIZE)
