"""Tones: numbers as a telephone dials them, to be written down; sound that is learnt in seconds.

A digit is two tones at once (dual-tone multi-frequency signalling, ITU-T Q.23), 50 to 80 ms of them
and a pause of 20 to 40 ms, in faint noise. Nothing is downloaded.
"""

import dataclasses
import functools
import itertools
from typing import Any, ClassVar

import numpy as np

from attention_jax.configuration import setting
from attention_jax.data.config import Corpus
from attention_jax.data.transcription import TranscriptionConfig

RATE = 8000
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LONGEST = 3
_ROWS, _COLUMNS, _KEYPAD = (697, 770, 852, 941), (1209, 1336, 1477), "123456789*0#"
_SIZES = {"train": 512, "validation": 64, "test": 64}
_SEED, _DRAWS = 19_811_101, 1 + 3 * LONGEST  # of each number


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(TranscriptionConfig):
    """Dialled numbers.

    Further fields are those of `data.transcription.TranscriptionConfig`.
    """

    name: str = setting("tones", choices=("tones",))
    sample_rate: ClassVar[int] = RATE
    brings_links: ClassVar[bool] = True

    def load(self) -> Corpus:
        stream = np.random.Philox(np.random.SeedSequence([_SEED]))
        # Twice as many as are wanted: no number, dialled alike, is in two splits.
        draws = stream.random_raw(2 * sum(_SIZES.values()) * _DRAWS).reshape(-1, _DRAWS).tolist()
        distinct = iter({example[0]: example for example in map(_example, draws)}.values())
        return {name: [*itertools.islice(distinct, size)] for name, size in _SIZES.items()}


def _example(draws: list[int]) -> tuple[str, tuple[str], dict[str, Any]]:
    # Imported here: the names of data sets are found without what makes frames.
    from attention_jax.data.sound.recording import FRAMES, STARTS, Recording

    length = 1 + draws[0] % LONGEST
    digits = [draw % 10 for draw in draws[1 : 1 + length]]
    tones = [400 + 8 * (draw % 31) for draw in draws[1 + LONGEST : 1 + LONGEST + length]]
    pauses = [160 + 8 * (draw % 21) for draw in draws[1 + 2 * LONGEST : 1 + 2 * LONGEST + length]]
    lengths = [tone + pause for tone, pause in zip(tones, pauses, strict=True)]
    source = " ".join(f"{d}:{t}+{p}" for d, t, p in zip(digits, tones, pauses, strict=True))
    recording = Recording(
        RATE, sum(lengths), functools.partial(dial, digits, tones, pauses, draws[0]), source.encode
    )
    starts = np.cumsum([0, *lengths[:-1]]) / RATE
    text = " ".join(WORDS[digit] for digit in digits)
    return source, (text,), {FRAMES.name: recording, STARTS: starts}


def dial(digits: list[int], tones: list[int], pauses: list[int], seed: int) -> np.ndarray:
    """Dials a number.

    Args:
      digits: Its digits.
      tones: How many samples the tones of each are long.
      pauses: How many samples the pause after each is long.
      seed: Of the noise.
    """
    parts = []
    for digit, tone, pause in zip(digits, tones, pauses, strict=True):
        row, column = divmod(_KEYPAD.index(str(digit)), len(_COLUMNS))
        angles = 2 * np.pi * np.arange(tone) / RATE
        both = np.sin(_ROWS[row] * angles) + np.sin(_COLUMNS[column] * angles)
        parts += [0.25 * both, np.zeros(pause)]
    sound = np.concatenate(parts)
    noise = np.random.Philox(np.random.SeedSequence([seed])).random_raw(len(sound)) / 2**64 - 0.5
    return (sound + 0.01 * noise).astype(np.float32)
