"""Spectrograms with the attention to them: what a model heard, and when it wrote what."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from attention_jax.plotting.attended_picture import AttendedPicture
from attention_jax.plotting.figure import (
    ATTENTION,
    ATTENTION_MAP,
    TRUTH,
    new_figure,
    printable,
    text_style,
    tidy,
)

_WIDTH, _PER_TOKEN, _OF_SOUND = 7.0, 0.16, 0.8  # inches
_ON_DARK = [withStroke(linewidth=1.9, foreground="white", alpha=0.7)]  # seen on dark sound, too


def spectrograms(sounds: Sequence[AttendedPicture]) -> Figure:
    """Draws each recording as a spectrogram with the attention of its output below.

    Blue lines are where words begin by the attention, orange dashes where they do in truth.

    Raises:
      ValueError: If there are none.
    """
    if not sounds:
        raise ValueError("expected at least one recording, found none")
    heights = [
        height for sound in sounds for height in (_OF_SOUND, _PER_TOKEN * (1 + len(sound.target)))
    ]
    figure = new_figure(_WIDTH, sum(heights) + 0.45 * len(heights))
    figure.set_layout_engine("constrained", h_pad=0.03)
    rows = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    for sound, above, below in zip(sounds, rows[::2], rows[1::2], strict=True):
        _draw_sound(above, sound)
        _draw_attention(below, sound)
    return figure


def _draw_sound(axes: Axes, sound: AttendedPicture) -> None:
    canvas = sound.canvas
    axes.imshow(
        255 - canvas.pixels[..., 0], aspect="auto", cmap="magma", interpolation="nearest",
        extent=(0.0, canvas.seconds, 0, len(canvas.pixels)),
    )  # fmt: skip
    axes.set_title(printable(sound.title), loc="left", **text_style(8))
    axes.set_ylabel("mel band", **text_style(7))
    _mark(axes, sound)


def _draw_attention(axes: Axes, sound: AttendedPicture) -> None:
    number = len(sound.target)
    axes.imshow(
        sound.weights, aspect="auto", cmap=ATTENTION_MAP, interpolation="nearest", vmin=0.0,
        extent=(0.0, sound.canvas.seconds, number - 0.5, -0.5),
    )  # fmt: skip
    axes.set_yticks(range(number))
    axes.set_yticklabels([printable(token) for token in sound.target], **text_style(7))
    axes.set_xlabel("seconds", **text_style(7))
    _mark(axes, sound)


def _mark(axes: Axes, sound: AttendedPicture) -> None:
    tidy(axes, grid=False)
    axes.tick_params(labelsize=7)
    marked = (sound.starts, ATTENTION, "-"), (sound.canvas.starts, TRUTH, "--")
    for times, colour, style in marked:
        for time in times:
            axes.axvline(
                time, color=colour, linestyle=style, linewidth=0.9, path_effects=_ON_DARK
            )
