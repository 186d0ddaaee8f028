"""Made-up sound, as attention is drawn on it."""

import dataclasses

import numpy as np

from attention_jax.data.pictures import Canvas


def heard(numpy_rng, frames, starts=(), sound=None, bands=4):
    """Returns a spectrogram of made-up sound, with a place for each frame."""
    left = np.arange(frames)
    boxes = np.stack([left, 0 * left, left + 1, 0 * left + bands], axis=-1)
    pixels = numpy_rng.integers(0, 256, (bands, frames, 1)).astype(np.uint8)
    canvas = Canvas.of(pixels, boxes)
    return dataclasses.replace(canvas, seconds=frames / 100, starts=starts, sound=sound)
