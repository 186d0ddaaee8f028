"""Spectrograms as pictures, on which attention to sound is drawn, and sound that can be played."""

import dataclasses
import io
import wave

import numpy as np
from jaxtyping import Float

from attention_jax.data.pictures import Canvas
from attention_jax.data.sound.filter_banks import HOP_SECONDS
from attention_jax.data.sound.reading import Samples
from attention_jax.data.sound.recording import Recording

MOST_PLAYED = 2**18  # bytes of a WAV file: 8 s at 16 kHz, 16 s at 8 kHz
_WIDTH = 2  # bytes of a sample


def spectrogram(recording: Recording, starts: Float[np.ndarray, " W"] | None = None) -> Canvas:
    """Spectrogram: draws log-mel features in greys, a frame a column, the highest band on top.

    The darker, the louder. It can be played where that is a file of at most `MOST_PLAYED` bytes.

    Args:
      recording: What is drawn, of N frames and F bands.
      starts: When its words begin, in seconds, where that is known.

    Returns:
      A canvas of F x N pixels with a place for each frame.
    """
    frames = np.asarray(recording, np.float64)  # N F
    quietest, loudest = frames.min(), frames.max()
    loudness = (frames - quietest) / (loudest - quietest or 1.0)
    pixels = np.rint(255 * (1 - loudness)).astype(np.uint8)[:, ::-1].T[..., None]  # N F -> F N 1
    number, bands = frames.shape
    left, top = np.arange(number), np.zeros(number, np.int64)
    boxes = np.stack([left, top, left + 1, top + bands], axis=-1)
    is_short = _WIDTH * recording.num_samples <= MOST_PLAYED
    return dataclasses.replace(
        Canvas.of(pixels, boxes),
        seconds=HOP_SECONDS * number,
        starts=() if starts is None else starts.tolist(),
        sound=(lambda: wav(recording.samples(), recording.rate)) if is_short else None,
    )


def wav(samples: Samples, rate: int) -> bytes:
    """Linear PCM: returns samples in [-1, 1] as a WAV file of one channel and 16 bits."""
    content = io.BytesIO()
    with wave.open(content, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(_WIDTH)
        file.setframerate(rate)
        levels = np.rint(32767 * np.clip(samples, -1.0, 1.0))
        file.writeframes(levels.astype("<i2").tobytes())
    return content.getvalue()
