"""Log-mel features against a Fourier transform and triangles written out in NumPy."""

import numpy as np
import pytest

from attention_jax.data.sound.filter_banks import (
    BANDS,
    frame_count,
    frames_at,
    log_mel,
    mel_filters,
    normalized,
    seconds_at,
)


def triangles(size, rate):
    """Each band rises from the centre below it to its own, and falls to the one above."""
    top = 2595 * np.log10(1 + rate / 2 / 700)
    found = np.zeros((BANDS, size // 2 + 1))
    for band in range(BANDS):
        low, centre, high = (top * (band + side) / (BANDS + 1) for side in range(3))
        for place in range(size // 2 + 1):
            mel = 2595 * np.log10(1 + place * rate / size / 700)
            if low < mel <= centre:
                found[band, place] = (mel - low) / (centre - low)
            elif centre < mel < high:
                found[band, place] = (high - mel) / (high - centre)
    return found


def test_features_are_energies_in_bands(numpy_rng):
    rate, window, hop, size = 8000, 200, 80, 512
    samples = 0.1 * numpy_rng.normal(size=window + hop + 30)
    features = log_mel(samples, rate)
    assert features.shape == (2, BANDS) and features.dtype == np.float32
    filters = triangles(size, rate)
    times, frequencies = np.arange(window), np.arange(size // 2 + 1)
    waves = np.exp(-2j * np.pi * np.outer(frequencies, times) / size)
    hann = np.sin(np.pi * times / window) ** 2
    for frame in range(2):
        piece = samples[frame * hop : frame * hop + window] * hann
        expected = np.log(filters @ np.abs(waves @ piece) ** 2)
        np.testing.assert_allclose(features[frame], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("rate", "size"), [(8000, 512), (16_000, 1024)])
def test_every_band_hears_something(rate, size):
    filters = mel_filters(BANDS, size, rate)
    np.testing.assert_allclose(filters, triangles(size, rate), atol=1e-9)
    assert filters.max(axis=1).min() > 0.3


def test_a_tone_is_loudest_in_its_band():
    rate, hertz = 8000, 1000.0
    features = log_mel(np.sin(2 * np.pi * hertz * np.arange(rate) / rate), rate)
    centres = 700 * (10 ** (np.linspace(0, 2595 * np.log10(1 + 4000 / 700), 42) / 2595) - 1)
    assert abs(centres[1 + features.mean(axis=0).argmax()] - hertz) < 80


@pytest.mark.parametrize(("samples", "frames"), [(1, 1), (199, 1), (200, 1), (279, 1), (280, 2)])
def test_frames_are_those_with_a_whole_window(samples, frames):
    assert frame_count(samples, 8000) == frames
    assert log_mel(np.ones(samples), 8000).shape == (frames, BANDS)


def test_silence_is_finite_and_stays_silent():
    features = log_mel(np.zeros(400), 8000)
    assert np.isfinite(features).all()
    np.testing.assert_array_equal(normalized(features), 0)


def test_bands_have_mean_zero_and_variance_one(numpy_rng):
    features = normalized(3 + 5 * numpy_rng.normal(size=(50, 4)).astype(np.float32))
    np.testing.assert_allclose(features.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(features.std(axis=0), 1, rtol=1e-5)


def test_times_and_frames_are_one_another():
    assert frames_at(np.array([0.0, 0.0125, 0.052])).tolist() == [0, 0, 4]
    np.testing.assert_array_equal(frames_at(seconds_at(np.arange(9))), np.arange(9))
