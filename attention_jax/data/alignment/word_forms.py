"""Word forms: how words of a bitext are spelt, as evidence of which of them translate each other.

Cognates, names, numbers and punctuation look alike in both languages; words that begin alike in one
language are mostly forms of one word.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int
from scipy.sparse import csr_array

from attention_jax.data.alignment.bitext import Bitext

_CHUNK = 2**20  # bounds the memory that the comparison needs; the numbers do not depend on it


def similarities(
    bitext: Bitext, source_words: Sequence[str], target_words: Sequence[str]
) -> Float[np.ndarray, " word_pairs"]:
    """Dice coefficient of letter bigrams: computes how alike the two words of each word pair look.

    s(e,f) = 2 |B(e) & B(f)| / (|B(e)| + |B(f)|)

    B are the different pairs of neighbouring characters of a word, its beginning and end counted as
    characters: `^a`, `ab`, `b$` of ab. s is 1 for equal words, and 0 for a word and NULL.

    Args:
      bitext: The corpus.
      source_words: Its source words by number, without NULL.
      target_words: Its target words by number.

    Source:
      Brew and McKelvie 1996, on DICE; Kondrak, Marcu and Knight 2003, on aligning by cognates.
    """
    numbers: dict[str, int] = {}
    sources, targets = (
        [_bigrams(word, numbers) for word in side] for side in (source_words, target_words)
    )
    sources.append([])  # NULL has no letters
    has_bigram = [_indicators(side, len(numbers)) for side in (sources, targets)]
    sizes = [np.array([len(word) for word in side]) for side in (sources, targets)]
    found = np.empty(len(bitext.source_of))
    for begin in range(0, len(found), _CHUNK):
        chunk = slice(begin, begin + _CHUNK)
        source, target = bitext.source_of[chunk], bitext.target_of[chunk]
        shared = has_bigram[0][source].multiply(has_bigram[1][target]).sum(axis=1)
        found[chunk] = 2 * shared / (sizes[0][source] + sizes[1][target])
    return found


def stem_pairs(
    bitext: Bitext, source_words: Sequence[str], target_words: Sequence[str], letters: int
) -> Bitext:
    """Stemming by truncation: returns the pairs of stems of a bitext, a cell for each word pair.

    The stem of a word is its first letters; NULL's is NULL. There are no blocks.

    Args:
      bitext: The corpus.
      source_words: Its source words by number, without NULL.
      target_words: Its target words by number.
      letters: Length of a stem.
    """
    (sources, null), (targets, num_targets) = (
        _stems(words, letters) for words in (source_words, target_words)
    )
    keys = np.append(sources, null)[bitext.source_of] * num_targets + targets[bitext.target_of]
    pairs, cells = np.unique(keys, return_inverse=True)
    return Bitext(
        num_pairs=0,
        num_target_words=num_targets,
        blocks=(),
        cells=cells.astype(np.int32),
        source_of=pairs // max(num_targets, 1),
        target_of=pairs % max(num_targets, 1),
    )


def _stems(words: Sequence[str], letters: int) -> tuple[Int[np.ndarray, " words"], int]:
    """Numbers words by their first letters; returns the numbers, and how many there are."""
    numbers: dict[str, int] = {}
    stems = [numbers.setdefault(word[:letters], len(numbers)) for word in words]
    return np.array(stems, np.int64), len(numbers)


def _bigrams(word: str, numbers: dict[str, int]) -> list[int]:
    """Returns the number of each different bigram of a word; new ones are added to `numbers`."""
    # A line end and a space stand for the two ends, since no word has either.
    ends = f"\n{word} "
    bigrams = {ends[begin : begin + 2] for begin in range(len(ends) - 1)}
    return [numbers.setdefault(bigram, len(numbers)) for bigram in sorted(bigrams)]


def _indicators(bigrams: Sequence[Sequence[int]], width: int) -> csr_array:
    """Returns a sparse matrix of a row for each word, with 1 where it has a bigram."""
    ends = np.cumsum([0, *map(len, bigrams)])
    columns = np.array([number for word in bigrams for number in word], np.int32)
    return csr_array((np.ones(len(columns)), columns, ends), shape=(len(bigrams), width))
