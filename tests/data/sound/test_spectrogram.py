"""Spectrograms as pictures: a column a frame, the louder the darker, and sound that is heard."""

import io
import wave

import numpy as np

from attention_jax.data.sound import spectrogram as drawing
from attention_jax.data.sound.reading import read_bytes
from attention_jax.data.sound.recording import Recording
from attention_jax.data.sound.spectrogram import spectrogram, wav

RATE = 8000


def tone(seconds, hertz=1000):
    samples = np.sin(2 * np.pi * hertz * np.arange(round(seconds * RATE)) / RATE)
    samples = np.float32(samples * (np.arange(len(samples)) >= len(samples) // 2))
    return Recording(RATE, len(samples), lambda: samples, lambda: b""), samples


def test_a_column_is_a_frame_and_the_lowest_band_is_below():
    recording, _ = tone(0.5)
    canvas = spectrogram(recording, np.array([0.25]))
    frames = np.asarray(recording)
    assert canvas.pixels.shape == (40, len(frames), 3) and canvas.starts == [0.25]
    np.testing.assert_allclose(canvas.seconds, 0.01 * len(frames))
    grey = canvas.pixels[..., 0].astype(int)
    assert grey.min() == 0 and grey.max() == 255
    order = np.argsort(frames[:, 7], kind="stable")
    assert (np.diff(grey[40 - 1 - 7][order]) <= 0).all()  # the louder, the darker
    assert canvas.boxes[[0, 5]].tolist() == [[0, 0, 1, 40], [5, 0, 6, 40]]
    assert canvas.places[:2] == ["0.00 s", "0.01 s"]


def test_silence_is_drawn():
    silent = Recording(RATE, 800, lambda: np.zeros(800, np.float32), lambda: b"")
    assert (spectrogram(silent).pixels == 255).all()


def test_short_sound_can_be_played(monkeypatch):
    recording, samples = tone(0.5)
    content = spectrogram(recording).sound()
    with wave.open(io.BytesIO(content)) as file:
        assert file.getnchannels() == 1 and file.getframerate() == RATE
    np.testing.assert_allclose(read_bytes(content, RATE, "it"), samples, atol=1e-4)
    monkeypatch.setattr(drawing, "MOST_PLAYED", 2 * len(samples) - 1)
    assert spectrogram(recording).sound is None


def test_what_is_louder_than_a_file_can_hold_is_cut():
    content = wav(np.array([2.0, -2.0], np.float32), RATE)
    np.testing.assert_allclose(read_bytes(content, RATE, "it"), [1.0, -1.0], atol=1e-4)
