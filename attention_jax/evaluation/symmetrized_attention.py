"""Alignments from the attention of a model and of one of the opposite direction.

Attention here is between words and without EOS; a matrix is of words that share no token. Forward
ones are `T S`; reverse ones are `S T`, a row for each word of the source, which the opposite model
writes.
"""

from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.pharaoh import Link, MarkedLinks
from attention_jax.evaluation.symmetrization import METHODS, symmetrize
from attention_jax.evaluation.word_weights import WordWeights

Attention = Sequence[WordWeights | Float[np.ndarray, "_T _S"]]
Links = list[Collection[Link]]


def extract_links(attention: Attention, threshold: float | None = None) -> Links:
    """Makes links (source, target) of the attention of each sentence pair.

    Args:
      attention: Weights, `T S`.
      threshold: See `WordWeights.links`.
    """
    return [WordWeights.of(each).links(threshold) for each in attention]


def score_threshold(
    attention: Attention, golds: Sequence[MarkedLinks], threshold: float
) -> dict[str, float]:
    """Compares the links of at least so much weight with gold alignments.

    Returns:
      `aer_threshold`, `alignment_precision_threshold`, `alignment_recall_threshold` in percent.
    """
    return _scores(extract_links(attention, threshold), golds, "_threshold")


def score_both_directions(
    forward: Attention,
    reverse: Attention,
    golds: Sequence[MarkedLinks],
    threshold: float | None = None,
) -> dict[str, float]:
    """Compares the opposite model's attention, and both together, with gold alignments.

    Args:
      forward: Weights of each sentence pair, `T S`.
      reverse: Those of the opposite direction, `S T`.
      golds: The gold links of each, (source, target).
      threshold: See `extract_links`; used for both directions.

    Returns:
      In percent `aer_reverse` and, for each way of symmetrising, `aer_intersection`, `aer_union`,
      `aer_grow_diag`, ...; with a threshold `aer_threshold_reverse` and so on. Precision and recall
      of each likewise, as `alignment_precision_reverse` and `alignment_recall_reverse`.

    Source:
      Koehn, Och and Marcu 2003, for attention in place of an aligner's links.
    """
    kind = "" if threshold is None else "_threshold"
    one = extract_links(forward, threshold)
    other = [
        [(source, target) for target, source in links]
        for links in extract_links(reverse, threshold)
    ]
    scores = _scores(other, golds, f"{kind}_reverse")
    for method in METHODS:
        both = [symmetrize(*pair, method) for pair in zip(one, other, strict=True)]
        scores |= _scores(both, golds, f"{kind}_{method.replace('-', '_')}")
    return scores


def _scores(links: Links, golds: Sequence[MarkedLinks], suffix: str) -> dict[str, float]:
    counts = count_links(links, golds)
    return {
        f"aer{suffix}": counts.aer,
        f"alignment_precision{suffix}": counts.precision,
        f"alignment_recall{suffix}": counts.recall,
    }
