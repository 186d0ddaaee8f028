"""Pictures of where each word looked: the attention of every step, laid over the source's picture.

The picture is pale where a word did not look; what it looked at most has its own colours, under a
veil whose strength is the weight's share of the largest.
"""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, UInt8
from matplotlib.figure import Figure

from attention_jax.data.pictures import Canvas
from attention_jax.plotting.figure import ATTENTION, OUTLINE, new_figure, printable, text_style

# Lengths are in inches.
HEIGHT = 0.9  # of a picture
WIDEST = 3.0
LINE = 11.0  # of all pictures side by side
LABEL_ROOM, TITLE_ROOM, GAP = 0.22, 0.3, 0.08
_VEIL = np.array([int(ATTENTION[place : place + 2], 16) for place in (1, 3, 5)])
_PALE, _STRENGTH = 0.35, 0.65  # of the picture where no attention is, and of the veil


@dataclasses.dataclass(frozen=True, eq=False)
class AttendedPicture:
    """A picture, or the spectrogram of sound, and the attention of each word to its places.

    Attributes:
      canvas: The picture.
      weights: `T N`.
      target: T words.
      title: Shown above, such as its name.
      starts: When words begin by the attention, in seconds; of sound only.
    """

    canvas: Canvas
    weights: Float[np.ndarray, "T N"]
    target: Sequence[str]
    title: str = ""
    starts: Sequence[float] = ()

    def __post_init__(self) -> None:
        """Checks that words and places are those of the weights."""
        expected = len(self.target), len(self.canvas.boxes)
        if np.shape(self.weights) != expected:
            raise ValueError(f"expected weights of shape {expected}, found {self.weights.shape}")


def overlay(canvas: Canvas, row: Float[np.ndarray, " N"]) -> UInt8[np.ndarray, "H W 3"]:
    """Lays the attention of one step over a picture.

      share = a_n / max a;   shown = (1 - v) (white + p (pixel - white)) + v veil

    with p from 0.35 to 1 and v from 0 to 0.65 as the share grows.
    """
    height, width = canvas.pixels.shape[:2]
    share = np.zeros((height, width, 1))
    largest = float(np.max(row, initial=0.0)) or 1.0
    for weight, (left, top, right, bottom) in zip(row, canvas.boxes, strict=True):
        share[top:bottom, left:right] = weight / largest
    present = _PALE + (1 - _PALE) * share
    shown = 255 + present * (canvas.pixels.astype(np.float64) - 255)
    veil = _STRENGTH * share
    return np.rint((1 - veil) * shown + veil * _VEIL).astype(np.uint8)


def attended_pictures(drawn: Sequence[AttendedPicture]) -> Figure:
    """Draws pictures below one another, each once for every word.

    Raises:
      ValueError: If there are none.
    """
    if not drawn:
        raise ValueError("expected at least one picture, found none")
    places, bottom = [], GAP
    for one in drawn:
        placed, bottom = _places(one, bottom)
        places.append(placed)
    right = max(left + width for placed in places for left, _, width in placed)
    figure = new_figure(right + GAP, bottom)
    for one, placed in zip(drawn, places, strict=True):
        _draw(figure, one, placed)
    return figure


def _size(one: AttendedPicture) -> tuple[float, float]:
    """Returns width and height of a picture in inches."""
    height, width = one.canvas.pixels.shape[:2]
    scale = min(HEIGHT / height, WIDEST / width)
    return width * scale, height * scale


def _places(
    one: AttendedPicture, top: float
) -> tuple[list[tuple[float, float, float]], float]:
    """Lays the steps of a picture out in lines.

    Returns:
      Left, top and width of each, and where the next picture begins.
    """
    width, height = _size(one)
    slot = max(width, 0.55) + GAP
    beside = max(1, math.floor(LINE / slot))
    top += TITLE_ROOM
    below = height + LABEL_ROOM + GAP
    steps = [
        (GAP + slot * (step % beside), top + below * (step // beside), width)
        for step in range(len(one.target) + 1)
    ]
    return steps, top + below * (len(one.target) // beside + 1)


def _draw(
    figure: Figure, one: AttendedPicture, placed: Sequence[tuple[float, float, float]]
) -> None:
    """Draws the picture by itself, and then as each word saw it."""
    across, down = figure.get_size_inches()
    _, height = _size(one)
    images = [one.canvas.pixels, *(overlay(one.canvas, row) for row in one.weights)]
    labels = ["", *map(printable, one.target)]
    for image, label, (left, top, width) in zip(images, labels, placed, strict=True):
        axes = figure.add_axes(
            (left / across, 1 - (top + height) / down, width / across, height / down)
        )
        axes.imshow(image, interpolation="nearest", aspect="auto")
        axes.set_xticks([])
        axes.set_yticks([])
        for spine in axes.spines.values():
            spine.set(color=OUTLINE, linewidth=0.5)
        axes.set_xlabel(label, labelpad=2, **text_style(8.0))
    left, top, _ = placed[0]
    style = text_style(9.0, fontweight="bold")
    figure.text(left / across, 1 - (top - 0.08) / down, printable(one.title), va="bottom", **style)
