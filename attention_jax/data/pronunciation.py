"""Pronunciation tables: a word and its phonemes, which spaces separate."""

import dataclasses
from pathlib import Path
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.builders.blocks import Example, grouped
from attention_jax.data.tables import read_table
from attention_jax.data.transduction import TransductionConfig
from attention_jax.spaced_words import spaced_words

COLUMNS = ("word", "pronunciation")
_KINDS = {"whole": "characters", "parts": "letter_parts", "both": "letters_and_parts"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class PronunciationConfig(TransductionConfig):
    """What every data set of pronunciations has.

    Attributes:
      letters: What words are read as: `whole` letters, their `parts` by Unicode's canonical
        decomposition (NFD), the jamo of a Hangul syllable and `e` and an accent of `é`, or `both`,
        each such letter before its parts.
    """

    task: ClassVar[str] = "pronounce"
    letters: str = setting("whole", choices=tuple(_KINDS))

    @property
    def source_kind(self) -> str:
        """The kind of the source's symbols."""
        return _KINDS[self.letters]


def read_pronunciations(path: str | Path) -> list[Example]:
    """Reads a file of `word<TAB>PHONEME PHONEME` lines.

    Args:
      path: The file, as WikiPron and the SIGMORPHON shared tasks have them.

    Returns:
      An example for each word; where a file has several pronunciations of one, all of them count as
      right.

    Raises:
      DataError: Naming file and line of what is no such row.
    """
    rows = read_table(path, COLUMNS)
    return grouped((word, " ".join(spaced_words(phonemes))) for word, phonemes in rows)
