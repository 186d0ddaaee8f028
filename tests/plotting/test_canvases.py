"""Attention on what was seen, once for each word, or heard, all of it under the spectrogram."""

import dataclasses

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from attention_jax.plotting.attended_picture import AttendedPicture, overlay
from attention_jax.plotting.canvases import attended_canvases
from attention_jax.plotting.figure import ATTENTION
from tests.plotting.heard_data import heard


def test_sound_and_pictures_are_drawn_each_in_its_way(numpy_rng):
    canvas, weights, words = heard(numpy_rng, frames=6), np.full((2, 6), 1 / 6), ["one", "</s>"]
    sound = AttendedPicture(canvas, weights, words)
    seen = dataclasses.replace(sound, canvas=dataclasses.replace(canvas, seconds=0.0))
    assert len(attended_canvases([sound, sound]).axes) == 4
    assert len(attended_canvases([seen]).axes) == 3  # by itself, and as each word saw it
    white = dataclasses.replace(canvas, pixels=np.full_like(canvas.pixels, 255))
    looked = overlay(white, np.eye(6)[0]) / 255  # the most at the first place
    veil = 1 - (1 - looked[:, 0]) / 0.65
    np.testing.assert_allclose(veil, np.tile(to_rgb(ATTENTION), (len(veil), 1)), atol=0.01)
    assert (looked[:, -1] == 1).all()
    with pytest.raises(ValueError, match="at least one"):
        attended_canvases([])
