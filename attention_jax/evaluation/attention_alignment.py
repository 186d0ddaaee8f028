"""Attention against alignment: how much of the attention falls on the words that are aligned.

A weight matrix here is `T S` between words, without EOS on either side; links are (source, target)
pairs from 0. Weights may be asked for a row earlier or later (`shift`), since a decoder's state
may look at a word while the one before it, or after it, is written; or for a column, since an
encoder's state may tell of the word beside its own.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.aer import count_links, saer
from attention_jax.evaluation.pharaoh import Link, MarkedLinks
from attention_jax.evaluation.word_weights import WordWeights

Weights = Float[np.ndarray, "_T _S"]
SHIFTS = (-1, 0, 1)
# What is moved, and how far, by the endings of the names of what is measured then.
SHIFTED = {
    "_before": ("target", -1),
    "": ("target", 0),
    "_after": ("target", 1),
    "_source_before": ("source", -1),
    "_source_after": ("source", 1),
}
_SIDES = ("source", "target")  # of a link


def shifted(weights: Weights, shift: int, side: str = "target") -> Weights:
    """Returns the matrix whose row t is row t + shift; zeros where there is none.

    With shift 1 a word is judged by the attention of the step after the one that wrote it; or, with
    side `source` and for columns likewise, by the attention to the word after it.
    """
    if side == "source":
        return shifted(weights.T, shift).T
    moved = np.zeros_like(weights)
    size = len(weights)
    for row in range(max(0, -shift), min(size, size - shift)):
        moved[row] = weights[row + shift]
    return moved


def links_with_rows(
    links: Collection[Link], shift: int, num_rows: int, side: str = "target"
) -> list[Link]:
    """Returns the links of the words of a side that `shifted` has a row, or column, for."""
    return [link for link in links if 0 <= link[_SIDES.index(side)] + shift < num_rows]


def probability_mass(weights: Weights, links: Collection[Link]) -> float:
    """Computes the share of the attention of aligned target words that falls on aligned words.

    score = sum over links (s, t) of weights[t, s] / number of target words with links

    Source:
      Koehn and Knowles (2017), section 3.5, in the form of their program.
    """
    aligned = {target for _, target in links}
    return float(sum(weights[target, source] for source, target in links)) / len(aligned)


def match(weights: Weights, links: Collection[Link]) -> float:
    """Computes how often aligned source words are those with the highest attention.

    score = mean over target words with k > 0 links of 1/k #{linked s: weights[t, s] >= the k-th
    largest of row t}

    Source:
      Koehn and Knowles (2017), section 3.5, in the form of their program.

    Deviations:
      A weight of zero is no match, which theirs, of a softmax, never is: here a row may be sparse,
      or have no weight on words at all.
    """
    by_target: dict[int, list[int]] = {}
    for source, target in links:
        by_target.setdefault(target, []).append(source)
    scores = []
    for target, sources in by_target.items():
        row = weights[target]
        least = np.sort(row)[-len(sources)]
        scores.append(np.mean([row[source] >= least and row[source] > 0 for source in sources]))
    return float(np.mean(scores))


def score_attention(
    attention: Sequence[WordWeights | Weights], golds: Sequence[MarkedLinks]
) -> dict[str, float]:
    """Compares attention with gold alignments.

    Args:
      attention: That of each sentence pair; a matrix is of words that share no token.
      golds: Its gold links.

    Returns:
      In percent: `aer`, `alignment_precision` and `alignment_recall` of each target word's most
      attended source word and of those of the same tokens, `saer`, and for each shift `match`,
      `match_before` (-1) and `match_after` (+1), and `probability_mass` likewise: means over the
      sentence pairs with links, without the target words that have no row before or after them.
      With `_source_before` and `_source_after` columns are shifted: attention to the source word
      before or after the linked one. Where `match` of a shift is larger than `match`, the attention
      is off by one.

    Source:
      Koehn and Knowles (2017), section 3.5, where attention is off by one for German-English.
    """
    words = [WordWeights.of(each) for each in attention]
    matrices = [each.weights for each in words]
    counts = count_links([each.links() for each in words], golds)
    scores = {
        "aer": counts.aer,
        "alignment_precision": counts.precision,
        "alignment_recall": counts.recall,
        "saer": saer(matrices, golds),
    }
    linked = [
        (weights, gold.possible)
        for weights, gold in zip(matrices, golds, strict=True)
        if gold.possible
    ]
    measures: Mapping = {"match": match, "probability_mass": probability_mass}
    for name, measure in measures.items():
        for suffix, (side, shift) in SHIFTED.items():
            values = [
                measure(shifted(weights, shift, side), there)
                for weights, links in linked
                if (there := links_with_rows(links, shift, _size(weights, side), side))
            ]
            if values:
                scores[f"{name}{suffix}"] = 100 * float(np.mean(values))
    return scores


def _size(weights: Weights, side: str) -> int:
    return weights.shape[side == "source"]
