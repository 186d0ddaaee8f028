"""Attention as alignment: scores attention weights against gold links, by AER, SAER and match.

A weight matrix here is `T S` between words, without EOS on either side; links are (source, target)
pairs from 0. The weights may be shifted by a row, for attention is often off by one: a decoder may
look at the source of a word one step before or after it writes the word. They may be shifted by a
column too, since an encoder's state may stand for the word beside its own.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.aer import count_links, saer
from attention_jax.evaluation.pharaoh import Link, MarkedLinks
from attention_jax.evaluation.word_weights import WordWeights

Weights = Float[np.ndarray, "_T _S"]
SHIFTS = (-1, 0, 1)
# Which side is shifted and how far, by the suffix that the names of such measurements have.
SHIFTED = {
    "_before": ("target", -1),
    "": ("target", 0),
    "_after": ("target", 1),
    "_source_before": ("source", -1),
    "_source_after": ("source", 1),
}
_SIDES = ("source", "target")  # in the order of a link


def shifted(weights: Weights, shift: int, side: str = "target") -> Weights:
    """Shifted attention: returns the matrix whose row t is row t + shift, zeros past the ends.

    With shift 1 a word is judged by the attention of the step after the one that wrote it. With
    side `source`, columns are shifted: a source word is judged by the attention to the word after.
    """
    if side == "source":
        return shifted(weights.T, shift).T
    moved = np.zeros_like(weights)
    size = len(weights)
    for row in range(max(0, -shift), min(size, size - shift)):
        moved[row] = weights[row + shift]
    return moved  # no `np.roll`: rows must not come round at the other end


def linking_weights(weights: Weights, shift: int) -> Float[np.ndarray, "_T _S"]:
    """Weights that link: returns, for each target token, the attention of the step that links it.

    Whatever is said of a token's attention, its links, how sharp it is and what it covers, is said
    of these rows.

    Args:
      weights: Row t is the attention of the step that writes token t.
      shift: How many steps after that one its links are read; see `Objective.alignment_shift`.
    """
    return shifted(np.asarray(weights, np.float64), shift)


def links_with_rows(
    links: Collection[Link], shift: int, num_rows: int, side: str = "target"
) -> list[Link]:
    """Shifted attention: keeps the links of words for which `shifted` has a row (or column)."""
    return [link for link in links if 0 <= link[_SIDES.index(side)] + shift < num_rows]


def probability_mass(weights: Weights, links: Collection[Link]) -> float:
    """Probability mass: computes how much of aligned target words' attention is on their links.

    score = sum over links (s, t) of weights[t, s] / number of target words with links

    Source:
      Koehn and Knowles (2017), section 3.5, in the form of their program.
    """
    aligned = {target for _, target in links}
    return float(sum(weights[target, source] for source, target in links)) / len(aligned)


def match(weights: Weights, links: Collection[Link]) -> float:
    """Match: computes how often aligned source words are those with the highest attention.

    score = mean over target words with k > 0 links of 1/k #{linked s: weights[t, s] >= the k-th
    largest of row t}

    Source:
      Koehn and Knowles (2017), section 3.5, in the form of their program.

    Deviations:
      A weight of zero is no match. Theirs come from a softmax and are never zero; here a row may be
      sparse, or have no weight on words at all.
    """
    by_target: dict[int, list[int]] = {}
    for source, target in links:
        by_target.setdefault(target, []).append(source)
    scores = []
    for target, sources in by_target.items():
        row = weights[target]
        least = np.sort(row)[-len(sources)]  # as many may match as there are links
        scores.append(np.mean([row[source] >= least and row[source] > 0 for source in sources]))
    return float(np.mean(scores))


def score_attention(
    attention: Sequence[WordWeights | Weights], golds: Sequence[MarkedLinks]
) -> dict[str, float]:
    """Alignment error rate of attention: scores it against gold links, as it is and shifted.

    Args:
      attention: Of each sentence pair; a plain matrix is taken to be of words that share no token.
      golds: The gold links of each pair.

    Returns:
      In percent, `aer`, `alignment_precision` and `alignment_recall`, for which each target word is
      linked to its most attended source word (see `WordWeights.links`), and `saer`. Then `match`
      and `probability_mass`, also with the suffixes `_before` (shift -1), `_after` (+1), and for
      shifted columns `_source_before` and `_source_after`. These are means over the sentence pairs
      with links; words that have no row (or column) beside them are left out. If a shifted `match`
      is larger than `match`, attention is off by one.

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
                # A short sentence may keep no link when shifted; both measures divide by them.
                if (there := links_with_rows(links, shift, _size(weights, side), side))
            ]
            if values:
                scores[f"{name}{suffix}"] = 100 * float(np.mean(values))
    return scores


def _size(weights: Weights, side: str) -> int:
    return weights.shape[side == "source"]  # axis 0 is the target, axis 1 the source
