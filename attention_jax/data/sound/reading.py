"""Sound files: WAV, FLAC, Ogg, MP3 and what else libsndfile knows, as one channel of samples."""

import io
import math
import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from attention_jax.errors import DataError

Samples = Float[np.ndarray, " _"]


class Header(NamedTuple):
    """What the beginning of a sound file says of it.

    Attributes:
      num_samples: How many samples each channel has.
      rate: How many of them a second has, in Hz.
    """

    num_samples: int
    rate: int


def read_sound(
    source: str | Path | io.BufferedIOBase, rate: int, name: str | None = None
) -> Samples:
    """Reads a sound file, of which channels are averaged.

    Args:
      source: A path, or an open file.
      rate: That of the result, in Hz; a file of another one is resampled.
      name: What the file is called in messages; its path if not given.

    Returns:
      Samples in [-1, 1], float32.

    Raises:
      DataError: If there is no such file, it is damaged or no sound, it has no samples, or one of
        them is not finite.
    """
    name = str(source) if name is None else name
    soundfile = _checked_library(source, name)
    try:
        channels, found = soundfile.read(source, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, TypeError, ValueError) as error:
        raise _unreadable(name, error) from None
    samples = channels.mean(axis=1)  # N C -> N
    if not len(samples):
        raise DataError(f"{name}: expected sound, found a file without samples")
    if not np.isfinite(samples).all():
        raise DataError(f"{name}: expected finite samples, found others")
    return resample(samples, found, rate)


def read_header(path: str | Path) -> Header:
    """Reads what a sound file says of itself, which takes far less time than its samples.

    Raises:
      DataError: If there is no such file, it is damaged or no sound, or it has no samples.
    """
    soundfile = _checked_library(path, str(path))
    try:
        info = soundfile.info(os.fspath(path))
    except (soundfile.SoundFileError, TypeError, ValueError) as error:
        raise _unreadable(str(path), error) from None
    if info.frames <= 0:
        raise DataError(f"{path}: expected sound, found a file without samples")
    return Header(info.frames, info.samplerate)


def read_bytes(content: bytes, rate: int, name: str) -> Samples:
    """Reads the content of a sound file; see `read_sound`."""
    return read_sound(io.BytesIO(content), rate, name)


def resample(samples: Samples, rate: int, wanted: int) -> Samples:
    """Resampling: returns the samples at another rate, by a polyphase filter against aliasing."""
    if rate == wanted:
        return samples
    # Imported here because it takes longer than all of NumPy, and most files need it not.
    from scipy.signal import resample_poly

    common = math.gcd(rate, wanted)
    return resample_poly(samples, wanted // common, rate // common).astype(np.float32)


def resampled_length(header: Header, wanted: int) -> int:
    """Returns how many samples `resample` makes of a file."""
    return -(-header.num_samples * wanted // header.rate)  # rounded up


def _checked_library(source: Any, name: str) -> Any:
    """Returns the library that reads sound, once a path is known to be that of a file."""
    # Imported here, for it loads a shared library that texts do without.
    import soundfile

    if isinstance(source, str | Path) and not os.path.isfile(source):
        found = "a folder" if os.path.isdir(source) else "none"
        raise DataError(f"{name}: expected a sound file, found {found}")
    return soundfile


def _unreadable(name: str, error: Exception) -> DataError:
    reason = " ".join(str(getattr(error, "error_string", error)).split())[:200]
    return DataError(f"{name}: expected a sound file, such as WAV or FLAC, found none ({reason})")
