"""Spectrograms: both pictures of a recording share their time, and starts are marked."""

import numpy as np
import pytest

from attention_jax.plotting.figure import save_figure
from attention_jax.plotting.spectrogram import HeardSound, spectrograms


def test_a_recording_has_its_sound_and_its_attention(tmp_path, numpy_rng):
    sound = HeardSound(
        "$two$ one", numpy_rng.normal(size=(30, 4)), numpy_rng.random((3, 30)),
        ["two", "one", "</s>"], 0.3, found=[0.0, 0.12], gold=[0.0],
    )  # fmt: skip
    figure = spectrograms([sound, sound])
    above, below, *others = figure.axes
    assert len(others) == 2 and above.get_title(loc="left") == "$two$ one"
    assert above.get_xlim() == below.get_xlim() == (0.0, 0.3)
    np.testing.assert_array_equal(above.images[0].get_array(), sound.frames.T)
    np.testing.assert_array_equal(below.images[0].get_array(), sound.weights)
    assert [text.get_text() for text in below.get_yticklabels()] == ["two", "one", "</s>"]
    assert [line.get_xdata()[0] for line in below.lines] == [0.0, 0.12, 0.0]
    save_figure(figure, tmp_path / "attention.png")


def test_there_must_be_something_to_draw():
    with pytest.raises(ValueError, match="at least one"):
        spectrograms([])
