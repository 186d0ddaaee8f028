"""A parallel corpus as the aligners see it: a cell for every pair of words of every sentence pair.

Pairs of sentences of the same lengths form a block, in which a target word has a row of `states`:
the words of its source sentence in order, then NULL. All cells of a corpus lie in one flat array,
so that the E-step of a model is a few array operations a block, without padding or masks, and
collecting its counts is a single `bincount`.
"""

import dataclasses
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from jaxtyping import Int, Shaped

Sentence = Sequence[str]
Links = list[tuple[int, int]]
# Bounds what the lattice of a block needs at a time; it makes no difference to the numbers.
_BLOCK_CELLS = 2**18


@dataclasses.dataclass(frozen=True, eq=False)
class Block:
    """Sentence pairs of the same lengths.

    Attributes:
      pairs: Their positions in the corpus.
      start: Where their cells begin.
      target_length: T.
      num_states: S + 1 with NULL, S without.
    """

    pairs: Int[np.ndarray, " N"]
    start: int
    target_length: int
    num_states: int

    def view(self, cells: Shaped[np.ndarray, " cells"]) -> Shaped[np.ndarray, "N T states"]:
        """Returns the block's part of an array over all cells; writing to it writes there."""
        shape = (len(self.pairs), self.target_length, self.num_states)
        return cells[self.start : self.start + int(np.prod(shape))].reshape(shape)


@dataclasses.dataclass(frozen=True, eq=False)
class Bitext:
    """A parallel corpus, words as numbers.

    Attributes:
      num_pairs: How many pairs of sentences there are, those without a block included.
      num_target_words: Size of the target's vocabulary.
      blocks: All pairs that have words on both sides.
      cells: The word pair of each cell; the pairs of words that meet anywhere are numbered.
      source_of: The source word of each word pair; NULL has the largest number.
    """

    num_pairs: int
    num_target_words: int
    blocks: tuple[Block, ...]
    cells: Int[np.ndarray, " cells"]
    source_of: Int[np.ndarray, " word_pairs"]

    @property
    def num_tokens(self) -> int:
        """The number of target words in running text."""
        return sum(len(block.pairs) * block.target_length for block in self.blocks)


def make_bitext(
    sources: Sequence[Sentence], targets: Sequence[Sentence], *, null: bool = True
) -> Bitext:
    """Numbers the words of a parallel corpus, ignoring case, and lays out its cells.

    Args:
      sources: The sentences that words are linked to.
      targets: The sentences that are generated, one for each source.
      null: Whether target words may also come from NULL.

    Raises:
      ValueError: If there are not as many targets as sources.
    """
    source_ids, source_words = _numbered(sources)
    target_ids, target_words = _numbered(targets)
    end = [source_words] * null
    blocks, keys, start = [], [], 0
    for pairs in _same_lengths(sources, targets, extra=len(end)):
        states = np.array([source_ids[pair] + end for pair in pairs])
        words = np.array([target_ids[pair] for pair in pairs])
        key = states[:, None, :] * target_words + words[:, :, None]
        blocks.append(Block(np.array(pairs), start, *key.shape[1:]))
        keys.append(key.ravel())
        start += key.size
    word_pairs, cells = np.unique(np.concatenate(keys or [np.zeros(0, int)]), return_inverse=True)
    return Bitext(
        num_pairs=len(sources),
        num_target_words=target_words,
        blocks=tuple(blocks),
        cells=cells.astype(np.int32),
        source_of=word_pairs // max(target_words, 1),
    )


def links_from_states(
    bitext: Bitext, states: Iterable[Int[np.ndarray, "_N _T"]], *, null: bool = True
) -> list[Links]:
    """Turns the chosen state of every target word into links (source, target) of every pair.

    Args:
      bitext: The corpus.
      states: For each of its blocks, the state that every target word comes from.
      null: Whether the last state is NULL, which gives no link.
    """
    links: list[Links] = [[] for _ in range(bitext.num_pairs)]
    for block, chosen in zip(bitext.blocks, states, strict=True):
        num_words = block.num_states - null
        for pair, row in zip(block.pairs.tolist(), chosen.tolist(), strict=True):
            links[pair] = [(state, word) for word, state in enumerate(row) if state < num_words]
    return links


def _numbered(sentences: Sequence[Sentence]) -> tuple[list[list[int]], int]:
    """Returns the numbers of the words in order of appearance, and how many there are."""
    numbers: dict[str, int] = {}
    ids = [
        [numbers.setdefault(word.lower(), len(numbers)) for word in sentence]
        for sentence in sentences
    ]
    return ids, len(numbers)


def _same_lengths(
    sources: Sequence[Sentence], targets: Sequence[Sentence], extra: int
) -> Iterator[list[int]]:
    """Yields the members of the blocks; pairs with an empty side are in none."""
    groups = defaultdict(list)
    for pair, (source, target) in enumerate(zip(sources, targets, strict=True)):
        if source and target:
            groups[len(source), len(target)].append(pair)
    for (num_source, num_target), members in sorted(groups.items()):
        size = max(_BLOCK_CELLS // (num_target * (num_source + extra)), 1)
        for begin in range(0, len(members), size):
            yield members[begin : begin + size]
