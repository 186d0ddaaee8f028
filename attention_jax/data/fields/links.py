"""Word alignments as a field of batches: which tokens of a training pair are linked, `B T S`."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Int

from attention_jax.data.examples import Split
from attention_jax.data.field import SOURCE_AXIS, TARGET_AXIS, Field
from attention_jax.data.text.spans import overlaps
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.errors import DataError

Links = Int[np.ndarray, "_ 2"]
WordLinks = Sequence[tuple[int, int]]


def _mark(array: np.ndarray, row: int, links: Links) -> None:
    """Writes the (target, source) links of an example into its row, `T S`."""
    array[row, links[:, 0], links[:, 1]] = True


# Its values are added when a training begins, for training pairs only: (target, source) tokens.
FIELD = Field(
    name="links", axes=(TARGET_AXIS, SOURCE_AXIS), dtype=np.bool_, padding=False, write=_mark
)


def token_links(
    split: Split,
    words: tuple[Sequence[Sequence[str]], Sequence[Sequence[str]]],
    aligned: Iterable[WordLinks],
) -> list[Links]:
    """Word-to-subword links: turns links between words into links between all of their tokens.

    The EOS of both sides are linked too.

    Args:
      split: The pairs.
      words: The words of the sources and of the targets.
      aligned: For each pair, its links (source, target) of words.

    Returns:
      For each pair, its links (target, source) of tokens.

    Raises:
      DataError: If the tokens of a text do not spell its words.
    """
    tokens = (_tokens(split.source_vocabulary, split.sources, words[0]),
              _tokens(split.target_vocabulary, split.targets, words[1]))  # fmt: skip
    return [_token_links(*pair) for pair in zip(aligned, *tokens, strict=True)]


def inherited(links: WordLinks, num_targets: int) -> WordLinks:
    """Affiliation: gives every unlinked target word the links of the nearest linked one.

    Of two neighbours at the same distance, the right one is taken. A pair without any link stays
    without.

    Args:
      links: (source, target) words.
      num_targets: Number of target words, without EOS.

    Source:
      Devlin et al. (2014), on affiliation, as used by Liu et al. (2016).
    """
    sources: dict[int, list[int]] = {}
    for source, target in links:
        sources.setdefault(target, []).append(source)
    if not sources:
        return []
    return [
        (source, target)
        for target in range(num_targets)
        # False sorts before True: at equal distance, the neighbour that is not before.
        for source in sources[min(sources, key=lambda at: (abs(at - target), at < target))]
    ]


def _tokens(
    vocabulary: Vocabulary, texts: Sequence[str], words: Iterable[Sequence[str]]
) -> list[list[list[int]]]:
    """Returns, for each text, the tokens of each of its words, then EOS as one more word."""
    found = []
    for text, its_words in zip(texts, words, strict=True):
        surfaces = vocabulary.surfaces(text)
        try:
            found.append([*overlaps(its_words, surfaces), [len(surfaces)]])
        except ValueError as error:  # of a vocabulary that has changed its text
            raise DataError(f"training text {text!r}: no words to be linked, {error}") from None
    return found


def _token_links(
    links: WordLinks, source_tokens: list[list[int]], target_tokens: list[list[int]]
) -> Links:
    """Links every token of a word with every token of the words it is linked to, and both EOS."""
    ends = (len(source_tokens) - 1, len(target_tokens) - 1)
    pairs = {
        (target, source)
        for source_word, target_word in (*links, ends)
        for source in source_tokens[source_word]
        for target in target_tokens[target_word]
    }
    return np.array(sorted(pairs), np.int32)
