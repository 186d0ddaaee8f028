"""Symmetrized attention: word alignments from a model's attention and its opposite direction's.

Attention here is between words, without EOS; a plain matrix is taken to be of words that share no
token. That of the forward model is `T S`. The opposite model writes the source, so its attention is
`S T`, with a row for each source word.
"""

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.alignment import links_above
from attention_jax.evaluation.pharaoh import Link, MarkedLinks
from attention_jax.evaluation.symmetrization import METHODS, symmetrize
from attention_jax.evaluation.word_weights import WordWeights

Attention = Sequence[WordWeights | Float[np.ndarray, "_T _S"]]
Links = list[Collection[Link]]


def extract_links(attention: Attention, threshold: float | None = None) -> Links:
    """Word alignment: makes (source, target) links of each sentence pair's attention `T S`.

    For `threshold` see `WordWeights.links`.
    """
    return [WordWeights.of(each).links(threshold) for each in attention]


def score_threshold(
    attention: Attention, golds: Sequence[MarkedLinks], threshold: float
) -> dict[str, float]:
    """Alignment error rate: scores all links with at least the threshold's weight.

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
    """Symmetrization: scores the opposite model's alignments, and both models' combined.

    Args:
      forward: Weights of each sentence pair, `T S`.
      reverse: Those of the opposite direction, `S T`.
      golds: The gold links of each pair, (source, target).
      threshold: See `extract_links`; used for both directions.

    Returns:
      In percent, `aer_reverse` and an AER for each way of symmetrising: `aer_intersection`,
      `aer_union`, `aer_grow_diag`, ..., `aer_product` (see `product_links`), `aer_geometric_mean`
      (see `agreed_links`); with a threshold `aer_threshold_reverse` and so on, but for the product.
      Precision and recall of each as `alignment_precision_reverse`, `alignment_recall_reverse`, ...

    Source:
      Koehn, Och and Marcu 2003, for attention in place of an aligner's links.
    """
    kind = "" if threshold is None else "_threshold"
    one, other = extract_links(forward, threshold), _turned(extract_links(reverse, threshold))
    scores = _scores(other, golds, f"{kind}_reverse")
    for method in METHODS:
        both = [symmetrize(*pair, method) for pair in zip(one, other, strict=True)]
        scores |= _scores(both, golds, f"{kind}_{method.replace('-', '_')}")
    pairs = list(zip(forward, reverse, strict=True))
    least = {} if threshold is None else {"threshold": threshold}
    agreed = [agreed_links(*pair, **least) for pair in pairs]
    scores |= _scores(agreed, golds, f"{kind}_geometric_mean")
    if threshold is None:
        scores |= _scores([product_links(*pair) for pair in pairs], golds, "_product")
    return scores


def agreed_links(
    forward: WordWeights | Float[np.ndarray, "_T _S"],
    reverse: WordWeights | Float[np.ndarray, "_S _T"],
    threshold: float = 0.5,
) -> Collection[Link]:
    """Soft symmetrization: links words whose weights in both directions have a high mean.

      sqrt(F[t, s] R[s, t]) >= threshold

    No heuristic grows these links, and words that neither direction is sure of get none. So it is
    for weights that are nearly all on what a word is linked to, as those of an aligner that links
    have taught; attention that nothing has taught is rarely sure of anything.

    Args:
      forward: Weights F of a sentence pair.
      reverse: Those of the opposite direction, R.
      threshold: The least geometric mean.

    Source:
      Liang, Taskar and Klein 2006, section 4.1, who multiply the posteriors of two models, and
      link what is above a threshold.
    """
    there, back = WordWeights.of(forward), WordWeights.of(reverse)
    return links_above(np.sqrt(there.whole * back.whole.T), threshold)


def product_links(
    forward: WordWeights | Float[np.ndarray, "_T _S"],
    reverse: WordWeights | Float[np.ndarray, "_S _T"],
) -> Collection[Link]:
    """Soft symmetrization: links words by the product of both directions' weights.

      P[t, s] = F[t, s] R[s, t]

    Each target word is linked to the source word of the highest product in its row, each source
    word to the target word of the highest in its column; grow-diag joins the two. What one
    direction is sure of decides where the other wavers.

    Args:
      forward: Weights F of a sentence pair.
      reverse: Those of the opposite direction, R.

    Source:
      As `agreed_links`, but without a threshold.
    """
    there, back = WordWeights.of(forward), WordWeights.of(reverse)
    product = there.whole * back.whole.T
    one = dataclasses.replace(there, whole=product).links()
    (other,) = _turned([dataclasses.replace(back, whole=product.T).links()])
    return symmetrize(one, other, "grow-diag")


def _turned(links: Links) -> Links:
    """Returns the opposite model's links, whose target is the source here, as (source, target)."""
    return [[(source, target) for target, source in each] for each in links]


def _scores(links: Links, golds: Sequence[MarkedLinks], suffix: str) -> dict[str, float]:
    counts = count_links(links, golds)
    return {
        f"aer{suffix}": counts.aer,
        f"alignment_precision{suffix}": counts.precision,
        f"alignment_recall{suffix}": counts.recall,
    }
