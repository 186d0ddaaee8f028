"""Pronunciation tables: a word and its phonemes, which spaces separate."""

from pathlib import Path

from attention_jax.data.builders.blocks import Example, grouped
from attention_jax.data.tables import read_table
from attention_jax.spaced_words import spaced_words

COLUMNS = ("word", "pronunciation")


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
