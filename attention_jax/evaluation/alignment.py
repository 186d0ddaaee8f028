"""Word alignment: hard links from attention weights.

A weight matrix here is `T S`: one row for each target token, one column for each source token,
padding removed. Links are (source, target) pairs from 0.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

Weights = Float[np.ndarray, "T S"]
Links = list[tuple[int, int]]
Members = Sequence[Sequence[int]]


def drop_ends(
    weights: Weights, *, source: bool = True, target: bool = True
) -> Float[np.ndarray, "kept_T kept_S"]:
    """Removes the column of the source's EOS and the row of the target's, then renormalises.

    Args:
      weights: `T S`, EOS last on either side.
      source: Whether the source ends in EOS.
      target: Whether the target does.

    Returns:
      The rest. Its rows sum to what they did before, usually 1; a row that lay wholly on EOS
      becomes zero.

    Source:
      Koehn and Knowles 2017, sec. 3.5.
    """
    weights = np.asarray(weights, np.float64)
    if target:
        weights = weights[:-1]
    if not source:
        return weights
    total, kept = weights.sum(axis=1, keepdims=True), weights[:, :-1]
    remaining = kept.sum(axis=1, keepdims=True)
    return kept * np.divide(total, remaining, out=np.zeros_like(total), where=remaining > 0)


def merge_pieces(
    weights: Weights, source_words: Members, target_words: Members
) -> Float[np.ndarray, "words_T words_S"]:
    """Turns attention between pieces into attention between words.

    The weights of the pieces of one source word are summed, the rows of the pieces of one target
    word averaged, so that rows remain distributions. The weight of a source piece of several words
    is shared equally among them, and the row of a target piece is that of each of its words.

    Args:
      weights: `T S` between pieces, each of which belongs to a word.
      source_words: The pieces of each source word.
      target_words: The pieces of each target word.

    Raises:
      ValueError: If a piece has no word.
    """
    sizes = tuple(len(set().union(*words)) for words in (target_words, source_words))
    if np.shape(weights) != sizes:
        raise ValueError(
            f"expected weights of shape {sizes} for the pieces of the words, "
            f"found {np.shape(weights)}"
        )
    weights = np.asarray(weights, np.float64)
    to_source = membership(source_words, weights.shape[1])
    to_target = membership(target_words, weights.shape[0])
    return (to_target / to_target.sum(axis=0)).T @ weights @ to_source


def membership(words: Members, num_pieces: int) -> Float[np.ndarray, "pieces words"]:
    """Returns how much of each piece is of each word: equal shares of those that it belongs to."""
    member = indicators(words, num_pieces)
    shares = member.sum(axis=1, keepdims=True)
    return np.divide(member, shares, out=np.zeros_like(member), where=shares > 0)


def indicators(words: Members, num_pieces: int) -> Float[np.ndarray, "pieces words"]:
    """Returns 1 where a piece is of a word, and 0 elsewhere."""
    member = np.zeros((num_pieces, len(words)))
    for word, pieces in enumerate(words):
        member[list(pieces), word] = 1.0
    return member


def links_from_weights(weights: Weights) -> Links:
    """Links every target position with the source position that it attends to most.

    A row without any weight, as of a token that lay wholly on EOS, gets no link.
    """
    weights = np.asarray(weights)
    if weights.shape[1] == 0:
        return []
    best = weights.argmax(axis=1)
    return sorted(
        (int(source), target) for target, source in enumerate(best) if weights[target, source] > 0
    )


def links_above(weights: Weights, threshold: float) -> Links:
    """Links every target position with all source positions of at least so much weight."""
    chosen = np.argwhere(np.asarray(weights) >= threshold)
    return sorted((int(source), int(target)) for target, source in chosen)


def to_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Writes links as `0-0 1-2`, source first."""
    return " ".join(f"{source}-{target}" for source, target in links)
