"""Translation lexicon of a run: the most probable target tokens of each source token.

It is estimated from the training text, read from the user's file, or both. It is made once, with
the vocabularies whose ids it holds, and kept beside them: whatever changes there is noticed when
the run goes on.
"""

import dataclasses
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from absl import logging
from jaxtyping import Float, Int

from attention_jax.array_files import Form, read_arrays, unpacked_arrays
from attention_jax.data.alignment.translation_probabilities import translation_pairs
from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Texts
from attention_jax.data.lines import read_lines
from attention_jax.data.text.vocabulary import Vocabulary, write_atomically
from attention_jax.errors import DataError
from attention_jax.spaced_words import spaced_words
from attention_jax.types import SpecialIds

LEXICON = "lexicon"
LEXICON_FILE = "lexicon.npz"
_ORDER = "by_frequency"
_FORMS = {"ids": Form("i", 2), "probs": Form("f", 2)}
_ROUNDING = 1e-3  # by which the probabilities of a source word may add up to more than one

# Source ids, target ids, probabilities: an entry of the lexicon in each place.
Entries = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class Lexicon:
    """Translation lexicon, a row of K target ids for each source id.

    Attributes:
      ids: Target ids, the most probable first; PAD where there are fewer than K.
      probs: p(target | source), 0 for PAD.
      by_frequency: All target ids, special ones first, then the most frequent of the training text.
    """

    ids: Int[np.ndarray, "V K"]
    probs: Float[np.ndarray, "V K"]
    by_frequency: np.ndarray

    def save(self, directory: str | Path) -> None:
        """Writes it into the folder of a run's vocabularies."""
        content = io.BytesIO()
        np.savez_compressed(content, allow_pickle=False, **vars(self))
        write_atomically(Path(directory) / LEXICON_FILE, content.getvalue())


def load_resources(
    directory: str | Path, source: Vocabulary, target: Vocabulary
) -> dict[str, Any]:
    """Returns what fields look up beside the texts: the lexicon of a run, if it has one.

    Args:
      directory: The folder of its vocabularies.
      source: The vocabulary of the sources.
      target: The vocabulary of the targets.

    Raises:
      DataError: If the file is damaged, or of other vocabularies.
    """
    path = Path(directory) / LEXICON_FILE
    if not path.exists():
        return {}
    expected = f"{path}: expected the lexicon of a run"
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from None
    ids, probs = read_arrays(content, _FORMS, expected).values()
    if ids.shape != probs.shape or len(ids) != source.size or not ids.size:
        raise DataError(f"{expected}, found one of other source words")
    if ids.min() < 0 or ids.max() >= target.size:
        raise DataError(f"{expected}, found one of other target words")
    if probs.min() < 0 or probs.max() > 1 + _ROUNDING:
        raise DataError(f"{expected}, found probabilities below 0 or above 1")
    # Lexicons of earlier versions have no order of their own.
    in_order = np.arange(target.size)
    order = unpacked_arrays(content, expected, [_ORDER]).get(_ORDER, in_order)
    special = slice(SpecialIds.COUNT)
    is_order = np.array_equal(np.sort(order), in_order)
    if not is_order or not np.array_equal(order[special], in_order[special]):
        raise DataError(f"{expected}, found an order of other target words")
    return {LEXICON: Lexicon(ids, probs, order)}


def make_lexicon(
    train: Texts, source: Vocabulary, target: Vocabulary, data_config: DataConfig
) -> Lexicon:
    """Makes the lexicon of a run, in which the end of a source is translated by that of a target.

    Tokens are aligned as they are, be they words, subwords or letters, and unknown ones as one of
    them.

    Args:
      train: The training texts.
      source: Vocabulary of the sources.
      target: Vocabulary of the targets.
      data_config: Its `lexicon` says where translations are from. Those of the file count for
        source tokens of which the training text has none (Arthur 2016, the hybrid lexicon).

    Raises:
      DataError: If the file is not as it should be.
    """
    config, found = data_config.lexicon, []
    if config.method != "none":
        found.append(_estimated(train, source, target, config.method))
    if config.file:
        listed = _listed(config.file, source, target, is_lower=data_config.lowercase)
        is_new = ~np.isin(listed[0], found[0][0] if found else [])
        found.append(tuple(column[is_new] for column in listed))
    columns = tuple(np.concatenate(parts) for parts in zip(*found, strict=True))
    return Lexicon(*_packed(columns, source.size, config.size), _by_frequency(train, target))


def _by_frequency(train: Texts, target: Vocabulary) -> np.ndarray:
    counts = np.zeros(target.size, int)
    for text in train.targets:
        np.add.at(counts, target.encode(text), 1)
    counts[: SpecialIds.COUNT] = counts.max() + 1
    # Stable: of equally frequent ones, the lower id is first.
    return np.argsort(-counts, kind="stable").astype(np.int32)


def _estimated(train: Texts, source: Vocabulary, target: Vocabulary, method: str) -> Entries:
    """Estimates translations of the training text's tokens, whose ids stand for words."""
    sides = [
        [[*map(str, vocabulary.encode(text))] for text in texts]
        for vocabulary, texts in ((source, train.sources), (target, train.targets))
    ]
    found = translation_pairs(*sides, method, report=lambda line: logging.info("lexicon %s", line))
    sources, targets = (
        np.array([*map(int, words)], int) for words in (found.source_words, found.target_words)
    )
    return sources[found.sources], targets[found.targets], found.probs


def _listed(path: str, source: Vocabulary, target: Vocabulary, *, is_lower: bool) -> Entries:
    """Reads a file of translations; those that are no single known token on a side are left out."""
    entries, totals = [], {}
    for number, line in enumerate(read_lines(path), start=1):
        words = spaced_words(line)
        if not words:
            continue
        place = f"{path}:{number}"
        if len(words) != 3 or not (0 < _number(words[2]) <= 1):
            raise DataError(
                f"{place}: expected 'source target probability', the last above 0 and at most 1, "
                f"found {line.strip()!r}"
            )
        words = [word.lower() if is_lower else word for word in words]
        totals[words[0]] = totals.get(words[0], 0.0) + float(words[2])
        if totals[words[0]] > 1 + _ROUNDING:
            raise DataError(
                f"{place}: expected probabilities of {words[0]!r} that add up to at most 1, found "
                f"{totals[words[0]]:g}"
            )
        pair = _token(source, words[0]), _token(target, words[1])
        if SpecialIds.UNK not in pair:
            entries.append((*pair, float(words[2])))
    if not entries:
        raise DataError(f"{path}: expected words of both vocabularies, found none in a line")
    columns = tuple(map(np.array, zip(*entries, strict=True)))
    known = len(set(columns[0].tolist()))
    logging.info("%s: %d of %d source words are in the vocabulary", path, known, len(totals))
    return columns


def _token(vocabulary: Vocabulary, word: str) -> int:
    """Returns the id of a word that is a token, and UNK for any other."""
    ids = vocabulary.encode(word)
    return ids[0] if len(ids) == 1 else SpecialIds.UNK


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")  # which no comparison accepts


def _packed(entries: Entries, size: int, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns (ids, probs) of the `most` probable targets of each of `size` source ids."""
    is_other = entries[0] != SpecialIds.EOS
    sources, targets, probs = (
        np.append(column[is_other], end)
        for column, end in zip(entries, (SpecialIds.EOS, SpecialIds.EOS, 1.0), strict=True)
    )
    # By source, then the most probable first; equal ones by their ids.
    order = np.lexsort((targets, -probs, sources))
    sources, targets, probs = sources[order], targets[order], probs[order]
    first = np.searchsorted(sources, sources)  # where the row of each entry begins
    rank = np.arange(len(sources)) - first
    kept = rank < most
    ids, shares = np.zeros((size, most), np.int32), np.zeros((size, most), np.float32)
    ids[sources[kept], rank[kept]] = targets[kept]
    shares[sources[kept], rank[kept]] = probs[kept]
    return ids, shares


@dataclasses.dataclass(frozen=True)
class LexiconRows(Sequence):
    """The rows of a lexicon for the tokens of each example, looked up when they are asked for.

    Attributes:
      ids: The source ids of each example.
      lexicon: What they are looked up in.
    """

    ids: Sequence[np.ndarray]
    lexicon: Lexicon

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, index: Any) -> tuple[np.ndarray, np.ndarray]:
        return self.lexicon.ids[self.ids[index]], self.lexicon.probs[self.ids[index]]


def lexicon_of(resources: Mapping[str, Any]) -> Lexicon:
    """Returns the lexicon among the resources of examples.

    Raises:
      DataError: If there is none.
    """
    if LEXICON not in resources:
        raise DataError(
            "config.data.lexicon: expected a lexicon with the vocabularies of the run, found none"
        )
    return resources[LEXICON]
