"""Strings of digits: recordings of one speaker, end to end, with the times at which words begin.

The recordings of a digit are cut close, so that nothing stands between two of them. Which ones make
a string is told by the number of the string alone: other sizes of splits share their strings.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attention_jax.data.builders.spoken_digits.archive import (
    RATE,
    SPEAKERS,
    obtain_recordings,
)
from attention_jax.data.config import Corpus
from attention_jax.data.sound.reading import read_bytes
from attention_jax.data.sound.recording import FRAMES, STARTS, Recording

WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LONGEST = 6
# Indices of a speaker's recordings of each digit; the first are the official test set's.
INDICES = {"test": range(5), "validation": range(5, 10), "train": range(10, 50)}
_SEED = 20_150_805
_KEYS = {"train": 0, "validation": 1, "test": 2, "new_speaker": 3}


def compose(held_out: str, train_strings: int, other_strings: int) -> Corpus:
    """Composes the strings of every split, those of a speaker who is in no other among them.

    Args:
      held_out: That speaker.
      train_strings: How many strings of the training split.
      other_strings: How many of each other.

    Returns:
      Examples: the names of a string's recordings, its words, and what `Recording` makes frames of.

    Raises:
      DataError: As `obtain_recordings`.
    """
    sounds = {
        name: read_bytes(content, RATE, f"{name}.wav")
        for name, content in obtain_recordings().items()
    }
    known = [speaker for speaker in SPEAKERS if speaker != held_out]
    parts = {name: (known, indices) for name, indices in INDICES.items()}
    parts["new_speaker"] = ([held_out], range(50))
    sizes = {name: other_strings for name in parts} | {"train": train_strings}
    # Training first, as splits are listed.
    return {
        name: [
            _example(names, sounds)
            for names in choose(_KEYS[name], sizes[name], *parts[name])
        ]
        for name in _KEYS
    }


def choose(
    key: int, number: int, speakers: Sequence[str], indices: Sequence[int]
) -> list[tuple[str, ...]]:
    """Draws the recordings of each string: a speaker, a length, and as many digits.

    Args:
      key: Tells splits apart.
      number: How many strings.
      speakers: Whom to draw from.
      indices: Which recordings of each digit.
    """
    # Raw output of Philox, which NumPy promises never to change.
    stream = np.random.Philox(np.random.SeedSequence([_SEED, key]))
    draws = stream.random_raw(number * (2 + 2 * LONGEST)).reshape(number, 2 + 2 * LONGEST)
    strings = []
    for speaker, length, *rest in draws.tolist():
        who, size = speakers[speaker % len(speakers)], 1 + length % LONGEST
        pairs = zip(rest[:size], rest[LONGEST : LONGEST + size], strict=True)
        strings.append(tuple(f"{d % 10}_{who}_{indices[i % len(indices)]}" for d, i in pairs))
    return strings


def _example(
    names: Sequence[str], sounds: Mapping[str, Float[np.ndarray, " _"]]
) -> tuple[str, tuple[str], dict[str, Any]]:
    parts, source = [sounds[name] for name in names], " ".join(names)
    ends = np.cumsum([len(part) for part in parts])
    recording = Recording(
        RATE, int(ends[-1]), functools.partial(np.concatenate, parts), source.encode
    )
    text = " ".join(WORDS[int(name[0])] for name in names)
    starts = (ends - [len(part) for part in parts]) / RATE
    return source, (text,), {FRAMES.name: recording, STARTS: starts}
