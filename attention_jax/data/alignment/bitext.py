"""Bitext (parallel corpus) as aligners use it: a cell for each pair of words of a sentence pair.

Sentence pairs of equal lengths form a block, in which each target word has a row of `states`: the
words of its source sentence in order, then NULL. All cells of a corpus lie in one flat array, so
the E-step of a model is a few array operations a block, without padding or masks, and counting is
a single `bincount`.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Int, Shaped

Sentence = Sequence[str]
Links = list[tuple[int, int]]
# Bounds the memory that the lattice of a block needs; the numbers do not depend on it.
_BLOCK_CELLS = 2**18


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """A block of sentence pairs whose lengths are equal.

    Attributes:
      pairs: Their numbers in the corpus.
      start: Index of the first of their cells.
      target_length: T.
      num_states: S + 1 with NULL, S without.
    """

    pairs: Int[np.ndarray, " N"]
    start: int
    target_length: int
    num_states: int

    def view(self, cells: Shaped[np.ndarray, " cells"]) -> Shaped[np.ndarray, "N T states"]:
        """Returns the block's part of an array over all cells, as a view that can be written to."""
        shape = (len(self.pairs), self.target_length, self.num_states)
        return cells[self.start : self.start + int(np.prod(shape))].reshape(shape)


@dataclasses.dataclass(frozen=True, eq=False)
class Bitext:
    """A parallel corpus whose words are numbers.

    Word pairs are the pairs of words that share at least one sentence pair; they are numbered.

    Attributes:
      num_pairs: Number of sentence pairs, including those that are in no block.
      num_target_words: Size of the target vocabulary.
      blocks: Blocks of all pairs that have words on both sides.
      cells: The word pair of each cell.
      source_of: The source word of each word pair; NULL has the largest number.
      target_of: The target word of each word pair.
    """

    num_pairs: int
    num_target_words: int
    blocks: tuple[Block, ...]
    cells: Int[np.ndarray, " cells"]
    source_of: Int[np.ndarray, " word_pairs"]
    target_of: Int[np.ndarray, " word_pairs"]

    @property
    def num_tokens(self) -> int:
        """The number of target words in running text."""
        return sum(len(block.pairs) * block.target_length for block in self.blocks)


def make_bitext(
    sources: Sequence[Sentence], targets: Sequence[Sentence], *, null: bool = True
) -> Bitext:
    """Bitext: numbers the words of a parallel corpus, ignoring case, and lays out its cells.

    Args:
      sources: The sentences from which words come.
      targets: The sentences that are generated, one for each source.
      null: Whether target words may also come from NULL.

    Raises:
      ValueError: If the numbers of sources and targets differ.
    """
    source_ids, source_words = _numbered(sources)
    target_ids, target_words = _numbered(targets)
    end = [source_words] * null  # NULL as one more source word, behind the others of each sentence
    blocks, keys, start = [], [], 0
    for pairs in _same_lengths(sources, targets, extra=len(end)):
        states = np.array([source_ids[pair] + end for pair in pairs])  # N states
        words = np.array([target_ids[pair] for pair in pairs])  # N T
        # One integer for each pair of words: N 1 states with N T 1 -> N T states.
        key = states[:, None, :] * target_words + words[:, :, None]
        blocks.append(Block(np.array(pairs), start, *key.shape[1:]))
        keys.append(key.ravel())
        start += key.size
    # Of all possible word pairs few occur, which `np.unique` numbers without gaps.
    word_pairs, cells = np.unique(np.concatenate(keys or [np.zeros(0, int)]), return_inverse=True)
    return Bitext(
        num_pairs=len(sources),
        num_target_words=target_words,
        blocks=tuple(blocks),
        cells=cells.astype(np.int32),
        source_of=word_pairs // max(target_words, 1),
        target_of=word_pairs % max(target_words, 1),
    )


def links_from_states(
    bitext: Bitext, states: Iterable[Int[np.ndarray, "_N _T"]], *, null: bool = True
) -> list[Links]:
    """Word alignment: turns the state chosen for each target word into links (source, target).

    Args:
      bitext: The corpus.
      states: For each of its blocks, the state of every target word.
      null: Whether the last state is NULL, which gives no link.
    """
    links: list[Links] = [[] for _ in range(bitext.num_pairs)]
    for block, chosen in zip(bitext.blocks, states, strict=True):
        num_words = block.num_states - null
        for pair, row in zip(block.pairs.tolist(), chosen.tolist(), strict=True):
            links[pair] = [(state, word) for word, state in enumerate(row) if state < num_words]
    return links


def vocabulary(sentences: Sequence[Sentence]) -> list[str]:
    """Vocabulary: returns every word once, ignoring case, in the order of a bitext's numbers."""
    return list(dict.fromkeys(word.lower() for sentence in sentences for word in sentence))


def _numbered(sentences: Sequence[Sentence]) -> tuple[list[list[int]], int]:
    """Numbers words by first occurrence; returns the numbers and the size of the vocabulary."""
    numbers: dict[str, int] = {}
    ids = [
        [numbers.setdefault(word.lower(), len(numbers)) for word in sentence]
        for sentence in sentences
    ]
    return ids, len(numbers)


def _same_lengths(
    sources: Sequence[Sentence], targets: Sequence[Sentence], extra: int
) -> Iterator[list[int]]:
    """Yields the numbers of the pairs of each block; pairs with an empty side are in none."""
    groups = defaultdict(list)
    for pair, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if source and target:
            groups[len(source), len(target)].append(pair)
    for (num_source, num_target), members in sorted(groups.items()):
        size = max(_BLOCK_CELLS // (num_target * (num_source + extra)), 1)
        for begin in range(0, len(members), size):
            yield members[begin : begin + size]
