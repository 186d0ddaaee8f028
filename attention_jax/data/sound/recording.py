"""Recordings: sound that becomes frames when a batch needs it, as a field of examples."""

import dataclasses
import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from attention_jax.data.field import SOURCE, SOURCE_AXIS, Field
from attention_jax.data.sound.filter_banks import BANDS, frame_count, log_mel, normalized
from attention_jax.data.sound.reading import (
    Samples,
    read_header,
    read_sound,
    resampled_length,
)
from attention_jax.errors import DataError

# Where data know when each word of an example begins, this has it, in seconds.
STARTS = "word_starts"


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """Recording: an array of frames `T 40`, which are made when they are asked for.

    Attributes:
      rate: Samples of a second, in Hz.
      num_samples: How many there are.
      samples: Returns them.
      content: Returns bytes that tell it from others, for the hash of the data.
      is_kept: Whether its frames are kept once they are made, and not made anew in every epoch.
    """

    rate: int
    num_samples: int
    samples: Callable[[], Samples]
    content: Callable[[], bytes]
    is_kept: bool = True

    @classmethod
    def of_file(cls, path: Path, rate: int) -> "Recording":
        """Returns the recording in a file, at a rate of its own or of the file's.

        Raises:
          DataError: If that is no sound; of its samples only when they are asked for.
        """
        number = resampled_length(read_header(path), rate)
        return cls(rate, number, lambda: _whole(path, rate, number), path.read_bytes)

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and bands."""
        return len(self), BANDS

    def __len__(self) -> int:
        return frame_count(self.num_samples, self.rate)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self._kept if self.is_kept else self._made(), dtype)

    @functools.cached_property
    def _kept(self) -> np.ndarray:
        return self._made()

    def _made(self) -> np.ndarray:
        return normalized(log_mel(self.samples(), self.rate))


def _whole(path: Path, rate: int, number: int) -> Samples:
    """Reads a file, of which its beginning has said how long it is."""
    samples = read_sound(path, rate)
    if len(samples) != number:
        raise DataError(
            f"{path}: expected {number / rate:.2f} seconds of sound, as it says at its beginning, "
            f"found {len(samples) / rate:.2f}; it may be cut off"
        )
    return samples


def _fingerprint(recording: Recording) -> bytes:
    return hashlib.sha256(recording.content()).digest()


# In place of the ids of a text: what is read is known by the same name, whatever it is.
FRAMES = Field(
    name=SOURCE.name, axes=(SOURCE_AXIS, BANDS), dtype=np.float32, mask=f"{SOURCE.name}_mask",
    fingerprint=_fingerprint, is_input=True,
)  # fmt: skip
