"""Sound files of several kinds, channels and rates; what is wrong with one is a line."""

import numpy as np
import pytest
import soundfile

from attention_jax.data.sound.reading import (
    read_bytes,
    read_header,
    read_sound,
    resample,
    resampled_length,
)
from attention_jax.errors import DataError

RATE = 8000


def tone(seconds=0.1, rate=RATE, hertz=440.0):
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)


@pytest.mark.parametrize("ending", ["wav", "flac"])
def test_samples_are_those_that_were_written(tmp_path, ending):
    path = tmp_path / f"tone.{ending}"
    soundfile.write(path, tone(), RATE)
    found = read_sound(path, RATE)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, tone(), atol=1e-4)
    assert read_header(path) == (len(found), RATE)
    np.testing.assert_array_equal(read_bytes(path.read_bytes(), RATE, "x"), found)


def test_channels_are_averaged(tmp_path):
    path = tmp_path / "stereo.wav"
    soundfile.write(path, np.stack([tone(), 0.5 * tone()], axis=1), RATE, subtype="FLOAT")
    np.testing.assert_allclose(read_sound(path, RATE), 0.75 * tone(), atol=1e-6)


@pytest.mark.parametrize("rate", [RATE, 11_025, 44_100])
def test_another_rate_is_resampled(tmp_path, rate):
    path = tmp_path / "tone.wav"
    soundfile.write(path, tone(0.5, rate), rate, subtype="FLOAT")
    found = read_sound(path, RATE)
    assert len(found) == resampled_length(read_header(path), RATE)
    expected = tone(0.5)[: len(found)]
    middle = slice(500, 3500)  # without the filter's beginning and end
    np.testing.assert_allclose(found[: len(expected)][middle], expected[middle], atol=2e-3)


def test_resampling_leaves_out_what_the_rate_cannot_hold():
    found = resample(tone(0.5, 16_000, hertz=6000.0).astype(np.float32), 16_000, RATE)
    assert np.abs(found[500:3500]).max() < 0.01


def wrong_files(folder):
    (folder / "text.wav").write_text("no sound")
    (folder / "empty.wav").write_bytes(b"")
    (folder / "bare.raw").write_bytes(bytes(100))
    soundfile.write(folder / "none.wav", np.zeros(0), RATE)
    soundfile.write(folder / "nan.wav", np.full(9, np.nan, np.float32), RATE, subtype="FLOAT")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.wav", "missing.wav: expected a sound file, found none"),
        ("", ": expected a sound file, found a folder"),
        ("text.wav", r"text.wav: expected a sound file, such as WAV or FLAC, found none \("),
        ("empty.wav", r"empty.wav: expected a sound file, such as WAV or FLAC, found none \("),
        ("bare.raw", r"bare.raw: expected a sound file, such as WAV or FLAC, found none \("),
        ("none.wav", "none.wav: expected sound, found a file without samples"),
        ("nan.wav", "nan.wav: expected finite samples, found others"),
    ],
)
def test_what_is_no_sound_is_one_line(tmp_path, name, message):
    wrong_files(tmp_path)
    with pytest.raises(DataError, match=message) as caught:
        read_sound(tmp_path / name, RATE)
    assert "\n" not in str(caught.value)
    if name != "nan.wav":  # which only its samples tell
        with pytest.raises(DataError, match=message):
            read_header(tmp_path / name)
