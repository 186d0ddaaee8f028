"""Attention drawn on what was seen or heard, each in its own way."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from attention_jax.plotting.attended_picture import AttendedPicture, attended_pictures
from attention_jax.plotting.spectrogram import spectrograms


def attended_canvases(drawn: Sequence[AttendedPicture]) -> Figure:
    """Draws attention under spectrograms, or pictures as each word has seen them.

    Args:
      drawn: All of the same kind.

    Raises:
      ValueError: If there are none.
    """
    is_sound = any(one.canvas.seconds for one in drawn)
    return spectrograms(drawn) if is_sound else attended_pictures(drawn)
