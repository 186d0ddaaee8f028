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
    """EOS removal: drops the column of the source's EOS and the row of the target's, renormalises.

    Args:
      weights: `T S`, EOS last on either side.
      source: Whether the source ends in EOS.
      target: Whether the target does.

    Returns:
      The other rows and columns. Rows sum to what they did before, usually 1, except that a row
      that lay wholly on EOS becomes zero.

    Source:
      Koehn and Knowles 2017, sec. 3.5.
    """
    weights = np.asarray(weights, np.float64)
    if target:
        weights = weights[:-1]  # EOS is the last row
    if not source:
        return weights
    total, kept = weights.sum(axis=1, keepdims=True), weights[:, :-1]
    remaining = kept.sum(axis=1, keepdims=True)
    # To what the row summed to before, which need not be one: attention may stop nowhere.
    return kept * np.divide(total, remaining, out=np.zeros_like(total), where=remaining > 0)


def merge_pieces(
    weights: Weights, source_words: Members, target_words: Members
) -> Float[np.ndarray, "words_T words_S"]:
    """Subword-to-word attention: merges the pieces of each word.

    The weights of a source word's pieces are summed, the rows of a target word's pieces averaged,
    so that rows remain distributions. A source piece of several words is shared equally among
    them; a target piece of several words counts for each of them.

    Args:
      weights: `T S` between pieces, each of which belongs to a word.
      source_words: The pieces of each source word.
      target_words: The pieces of each target word.

    Raises:
      ValueError: If a piece belongs to no word.
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
    # words_T T @ T S @ S words_S
    return (to_target / to_target.sum(axis=0)).T @ weights @ to_source


def membership(words: Members, num_pieces: int) -> Float[np.ndarray, "pieces words"]:
    """Returns the share that each word has of each piece; a piece is split equally among words."""
    member = indicators(words, num_pieces)
    shares = member.sum(axis=1, keepdims=True)
    return np.divide(member, shares, out=np.zeros_like(member), where=shares > 0)


def indicators(words: Members, num_pieces: int) -> Float[np.ndarray, "pieces words"]:
    """Returns 1 where a piece belongs to a word, and 0 elsewhere."""
    member = np.zeros((num_pieces, len(words)))
    for word, pieces in enumerate(words):
        member[list(pieces), word] = 1.0
    return member


def links_from_weights(weights: Weights) -> Links:
    """Word alignment: links every target position with the source position it attends to most.

    A row without any weight gets no link; `drop_ends` leaves one where all of it was on EOS.
    """
    weights = np.asarray(weights)
    if weights.shape[1] == 0:  # `argmax` of nothing raises
        return []
    best = weights.argmax(axis=1)
    return sorted(
        (int(source), target) for target, source in enumerate(best) if weights[target, source] > 0
    )


def links_above(weights: Weights, threshold: float) -> Links:
    """Word alignment: links all pairs of positions of at least the threshold's weight."""
    chosen = np.argwhere(np.asarray(weights) >= threshold)  # T S -> links 2
    return sorted((int(source), int(target)) for target, source in chosen)


def to_pharaoh(links: Iterable[tuple[int, int]]) -> str:
    """Pharaoh format: writes links as `0-0 1-2`, source first."""
    return " ".join(f"{source}-{target}" for source, target in links)
