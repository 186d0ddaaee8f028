"""Spectrograms: both pictures of a recording share their time, and starts are marked."""

import numpy as np
import pytest

from attention_jax.data.pictures import Canvas
from attention_jax.plotting.attended_picture import AttendedPicture
from attention_jax.plotting.figure import ATTENTION, ATTENTION_MAP, TRUTH, save_figure
from attention_jax.plotting.spectrogram import spectrograms
from tests.plotting.heard_data import heard


def test_a_recording_has_its_sound_and_its_attention(tmp_path, numpy_rng):
    canvas = heard(numpy_rng, frames=30, starts=[0.0])
    sound = AttendedPicture(
        canvas, numpy_rng.random((3, 30)), ["two", "one", "</s>"], "$two$ one", [0.0, 0.12]
    )
    figure = spectrograms([sound, sound])
    above, below, *others = figure.axes
    assert len(others) == 2 and above.get_title(loc="left") == "$two$ one"
    assert above.get_xlim() == below.get_xlim() == (0.0, 0.3)
    image = np.asarray(above.images[0].get_array())
    np.testing.assert_array_equal(image, 255 - canvas.pixels[..., 0])
    assert above.get_ylim() == (0.0, 4.0)  # the lowest band below
    np.testing.assert_array_equal(below.images[0].get_array(), sound.weights)
    assert [text.get_text() for text in below.get_yticklabels()] == ["two", "one", "</s>"]
    assert [line.get_xdata()[0] for line in below.lines] == [0.0, 0.12, 0.0]
    colours = [line.get_color() for line in below.lines]
    assert colours == [ATTENTION, ATTENTION, TRUTH]
    assert below.images[0].get_cmap() == ATTENTION_MAP
    save_figure(figure, tmp_path / "attention.png")


def test_there_must_be_something_to_draw():
    with pytest.raises(ValueError, match="at least one"):
        spectrograms([])


def test_weights_are_those_of_the_frames(numpy_rng):
    canvas = heard(numpy_rng, frames=5)
    assert isinstance(canvas, Canvas)
    with pytest.raises(ValueError, match=r"expected weights of shape \(1, 5\), found \(1, 4\)"):
        AttendedPicture(canvas, np.ones((1, 4)), ["one"])
