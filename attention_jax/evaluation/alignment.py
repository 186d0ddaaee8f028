"""Hard alignments from attention weights.

A weight matrix here is `T S`: one row for each target token, one column for each source token,
padding removed. Links are (source, target) pairs from 0.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

Weights = Float[np.ndarray, "T S"]
Links = list[tuple[int, int]]


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
    weights: Weights, source_groups: Sequence[int], target_groups: Sequence[int]
) -> Float[np.ndarray, "words_T words_S"]:
    """Turns attention between pieces into attention between words.

    The weights of the pieces of one source word are summed, the rows of the pieces of one target
    word averaged, so that rows remain distributions.

    Args:
      weights: `T S` between pieces.
      source_groups: The word that each source piece belongs to, 0, 0, 1, ... as `word_groups`.
      target_groups: The same for the target.

    Raises:
      ValueError: If the groups do not match the weights.
    """
    weights = np.asarray(weights, np.float64)
    if weights.shape != (len(target_groups), len(source_groups)):
        raise ValueError(
            f"expected weights of shape ({len(target_groups)}, {len(source_groups)}) for the "
            f"groups, found {weights.shape}"
        )
    to_source, to_target = _membership(source_groups), _membership(target_groups)
    return (to_target / to_target.sum(axis=0)).T @ weights @ to_source


def word_groups(pieces: Sequence[str], marker: str = "▁") -> list[int]:
    """Numbers the words that pieces belong to; a piece that starts with `marker` begins a word.

    Where no piece has the marker, as with characters or words, each piece is its own word.
    """
    if not any(piece.startswith(marker) for piece in pieces):
        return list(range(len(pieces)))
    groups: list[int] = []
    for piece in pieces:
        begins = piece.startswith(marker) or not groups
        groups.append((groups[-1] if groups else -1) + begins)
    return groups


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


def _membership(groups: Sequence[int]) -> Float[np.ndarray, "pieces words"]:
    index = np.asarray(groups, int)
    return np.eye(index.max(initial=-1) + 1)[index]
