"""Documents: texts that consist of sentences, each with a label to be told.

In the form of the data, a line separator (U+2028) stands between two sentences. A batch has the
words of a document as a table with a sentence a row, so that batches are of documents with about as
many sentences; a sentence that is too long for a row is continued in the next.
"""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from attention_jax.configuration import setting
from attention_jax.data.builders.blocks import Example
from attention_jax.data.config import DataConfig
from attention_jax.data.field import SOURCE_AXIS, TARGET_AXIS, Field
from attention_jax.data.lines import read_lines
from attention_jax.data.text.symbol_kinds import SENTENCE_BREAK
from attention_jax.errors import DataError
from attention_jax.spaced_words import spaced_words, strip_spaces
from attention_jax.types import SpecialIds

COLUMNS = ("label", "text")
MOST_CHARACTERS = 100_000
WORDS_AXIS = "words"
# White space after `.`, `!` or `?`, with quotes or brackets that close between; nothing is needed
# after the signs of scripts that write no spaces.
_BETWEEN_SENTENCES = re.compile(
    r"""(?<=[.!?…])\s+|(?<=[.!?…]["'”’)\]])\s+|(?<=[。！？])(?=.)""", re.DOTALL
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DocumentConfig(DataConfig):
    """What every data set of documents has.

    Attributes:
      vocabulary_size: The most words, special ones included, the most frequent of the training
        documents; others are unknown. 0 for all. There are no more labels, either.
      max_sentence_words: The most words between spaces of a sentence; a longer one is cut.
      max_source_length: The most sentences of a training document; longer ones are dropped.

    Further, for all configs of a data set:
      word_kind: The kind of the words' vocabulary.
      separator: What separates sentences in a user's text; if empty, they end with a full stop, an
        exclamation mark or a question mark.
    """

    task: ClassVar[str] = "classify"
    word_kind: ClassVar[str] = "sentence_symbols"
    separator: ClassVar[str] = ""
    vocabulary_size: int = setting(20_000, at_least=0)
    max_sentence_words: int = setting(32, at_least=1)
    max_source_length: int = setting(256, at_least=1)

    @property
    def units(self) -> tuple[str, str]:  # type: ignore[override]
        """Kinds of both vocabularies: words, and whole labels."""
        return self.word_kind, "labels"


def sentences_of(document: str) -> list[str]:
    """Returns the sentences of a document in the form of the data."""
    return document.split(SENTENCE_BREAK)


def document_of(sentences: Sequence[str], longest: int, where: str = "document") -> str:
    """Makes a document of sentences, of which those of too many words are cut.

    Args:
      sentences: Texts; empty ones are left out.
      longest: The most words between spaces of a sentence.
      where: What messages call the document.

    Raises:
      DataError: If no sentence is left.
    """
    rows = []
    for words in map(spaced_words, sentences):
        rows += [" ".join(words[at : at + longest]) for at in range(0, len(words), longest)]
    if not rows:
        raise DataError(f"{where}: expected a sentence in every document, found none")
    return SENTENCE_BREAK.join(rows)


def read_text(text: str, config: DocumentConfig, where: str = "document") -> str:
    """Finds the sentences of a user's text, and returns it in the form of the data.

    Besides where the config says, a sentence ends at a line separator.

    Raises:
      DataError: If it has no sentence, or too many characters.
    """
    if len(text) > MOST_CHARACTERS:
        raise DataError(
            f"{where}: expected at most {MOST_CHARACTERS} characters, found {len(text)}"
        )
    sentences = [
        sentence
        for part in sentences_of(text)
        for sentence in (
            part.split(config.separator) if config.separator else _BETWEEN_SENTENCES.split(part)
        )
    ]
    return document_of(sentences, config.max_sentence_words, where)


def read_documents(path: str | Path, config: DocumentConfig) -> list[Example]:
    """Reads a file of `label<TAB>text` lines, one document a line.

    Raises:
      DataError: Naming file and line of what is no such row, or has no sentence.
    """
    examples = []
    for number, line in enumerate(read_lines(path), start=1):
        where, cells = f"{path}:{number}", [strip_spaces(cell) for cell in line.split("\t")]
        if len(cells) != len(COLUMNS):
            raise DataError(
                f"{where}: expected {len(COLUMNS)} columns separated by a tab "
                f"({', '.join(COLUMNS)}), found {len(cells)}"
            )
        label, text = cells
        if not label:
            raise DataError(f"{where}: expected a label in every row, found an empty column")
        examples.append(Example(read_text(text, config, where), (label,)))
    return examples


def check_labels(
    splits: Mapping[str, Sequence[tuple[Any, ...]]], names: Mapping[str, str]
) -> None:
    """Checks that the training documents have at least two labels, and the others no further ones.

    Args:
      splits: The examples of each split, in the order of their files.
      names: What messages call the splits.

    Raises:
      DataError: Naming the first document of which that is not so.
    """
    known = sorted({example[1][0] for example in splits["train"]})
    if len(known) < 2:
        raise DataError(
            f"{names['train']}: expected documents of two labels at least, found "
            f"{repr(known[0]) if known else 'none'}"
        )
    for split, examples in splits.items():
        for number, example in enumerate(examples, start=1):
            if example[1][0] not in known:
                raise DataError(
                    f"{names[split]}: expected labels of the training documents "
                    f"({', '.join(known)}), found {example[1][0]!r} in {split} document {number}"
                )


def _sentence_ids(examples: Any) -> list[np.ndarray]:
    """Returns the word ids of each document, one sentence a row."""
    found = []
    for document in examples.sources:
        rows = [examples.source_vocabulary.encode(each) for each in sentences_of(document)]
        ids = np.full((len(rows), max(map(len, rows))), SpecialIds.PAD, np.int32)
        for row, words in zip(ids, rows, strict=True):
            row[: len(words)] = words
        found.append(ids)
    return found


def _label_ids(examples: Any) -> list[np.ndarray]:
    """Returns the id of each document's label, which no end follows."""
    return [ids[:1] for ids in examples.target_ids]


def in_document_order(split: Any, tables: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Returns what a table has of each word of a document, one word after the other.

    Args:
      split: The documents.
      tables: For each of them a value of every word, `N L`, padded alike or more than its ids.
    """
    found = []
    for ids, values in zip(split.columns["source"], tables, strict=True):
        found.append(values[tuple(map(slice, ids.shape))][ids != SpecialIds.PAD])
    return found


# The words of a document, PAD where its sentence has no more; the mask is of sentences.
DOCUMENT = Field(
    name="source", axes=(SOURCE_AXIS, WORDS_AXIS), values=_sentence_ids, padding=SpecialIds.PAD,
    mask="source_mask", is_input=True,
)  # fmt: skip
LABEL = Field(name="target", axes=(TARGET_AXIS,), values=_label_ids, mask="target_mask")
