"""Transcription: what data sets of recordings and of what is said in them share."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Float

from attention_jax.configuration import setting
from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Split
from attention_jax.data.sound.filter_banks import frames_at
from attention_jax.data.sound.recording import FRAMES, STARTS, Recording
from attention_jax.data.tables import read_table
from attention_jax.data.text.spans import overlaps
from attention_jax.errors import DataError
from attention_jax.spaced_words import spaced_words

COLUMNS = ("file", "text")
_MOST_KEPT = 4_000_000  # frames of a table that are kept in memory: 11 hours, 0.6 GiB


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranscriptionConfig(DataConfig):
    """Config of any data set of recordings.

    Further fields are those of `data.config.DataConfig`; the length of a source is counted in
    frames of 10 ms.

    Attributes:
      spelling: The tokens of a text: `characters`, as in listen, attend and spell, or `words`.
      max_source_length: Longest training recording in frames; longer ones are dropped.
      max_target_length: Longest training text in tokens, EOS included.
    """

    task: ClassVar[str] = "transcribe"
    spelling: str = setting("characters", choices=("characters", "words"))
    max_source_length: int = setting(2000, at_least=1)
    max_target_length: int = setting(300, at_least=2)

    @property
    def units(self) -> tuple[str, str]:  # type: ignore[override]
        """Kinds of the symbols of both vocabularies; a source's text is the name of a file."""
        return "characters", self.spelling

    def gold_links(self, split: Split) -> list[np.ndarray] | None:
        """Links the tokens of each word to the frames from where it begins to the next one."""
        if STARTS not in split.extras:
            return None
        columns = split.targets, split.extras[STARTS], split.extras[FRAMES.name]
        found = []
        for text, starts, recording in zip(*columns, strict=True):
            surfaces = split.target_vocabulary.surfaces(text)
            linked = np.zeros((len(surfaces), len(recording)), bool)
            tokens_of_words = overlaps(spaced_words(text), surfaces)
            frames_of_words = word_frames(starts, len(recording))
            for tokens, frames in zip(tokens_of_words, frames_of_words, strict=True):
                linked[tokens] = frames
            found.append(np.argwhere(linked).astype(np.int32))
        return found


def word_frames(starts: Float[np.ndarray, " W"], number: int) -> Bool[np.ndarray, "W N"]:
    """Returns the frames of each word: from its beginning to that of the next, at least one.

    Args:
      starts: When the words begin, in seconds.
      number: N, the frames that there are.
    """
    first = np.minimum(frames_at(starts), number - 1)[:, None]
    end = np.maximum(np.append(first[1:], number)[:, None], first + 1)
    frames = np.arange(number)
    return (first <= frames) & (frames < end)


def read_transcripts(path: str, rate: int) -> list[tuple[str, tuple[str, ...], dict]]:
    """Reads a table of `file<TAB>text` lines.

    Args:
      path: The table. Files are named from its folder, unless their paths are absolute.
      rate: At which recordings are to be read, in Hz.

    Returns:
      An example for each line: the file, its text, and the recording.

    Raises:
      DataError: Naming table and line of what is no such row, or of a file that is missing or no
        sound.
    """
    rows, recordings = read_table(path, COLUMNS), []
    for number, (file, _) in enumerate(rows, start=1):
        recordings += recordings_at([file], rate, Path(path).parent, f"{path}:{number}: ")
    is_kept = sum(map(len, recordings)) <= _MOST_KEPT
    return [
        (file, (text,), {FRAMES.name: dataclasses.replace(recording, is_kept=is_kept)})
        for (file, text), recording in zip(rows, recordings, strict=True)
    ]


def recordings_at(
    files: Sequence[str], rate: int, folder: Path = Path(), where: str = ""
) -> list[Recording]:
    """Returns the recordings in files.

    Args:
      files: Their paths, from the folder on unless they are absolute.
      rate: At which they are to be read, in Hz.
      folder: Where they are.
      where: What a message begins with.

    Raises:
      DataError: If one is missing, or no sound.
    """
    try:
        return [Recording.of_file(folder / file, rate) for file in files]
    except DataError as error:
        raise DataError(f"{where}{error}") from None
