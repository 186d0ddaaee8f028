"""Alignment error rate (AER) of word alignments, and SAER of soft ones."""

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.pharaoh import Link, MarkedLinks


def error_rate(counts: Float[np.ndarray, "*R F"]) -> Float[np.ndarray, "*R"]:
    """Alignment error rate in percent: computes it from numbers of links.

    AER = 100 (1 - (|A & S| + |A & P|) / (|A| + |S|))

    `counts` are |A|, |S|, |A & S| and |A & P|, in this order, or sums of them over sentence pairs.
    Where there are neither links nor sure gold links, nothing is wrong and the rate is 0.
    """
    links, sure, sure_hits, possible_hits = np.moveaxis(counts, -1, 0)  # each *R
    total = links + sure
    # `np.where` evaluates both branches: the inner one keeps 0 / 0 from warning.
    rate = 100 * (1 - (sure_hits + possible_hits) / np.where(total, total, 1))
    return np.where(total, rate, 0.0)


@dataclasses.dataclass(frozen=True)
class LinkCounts:
    """Link counts, from which precision, recall and AER follow; add them up to pool sentence pairs.

    Attributes:
      links: |A|, links of the hypothesis.
      sure: |S|, sure links of the gold alignment.
      sure_hits: |A & S|.
      possible_hits: |A & P|, where P contains S.
    """

    # Floats, because SAER puts sums of weights where AER has numbers of links.
    links: float = 0
    sure: float = 0
    sure_hits: float = 0
    possible_hits: float = 0

    def __add__(self, other: "LinkCounts") -> "LinkCounts":
        return LinkCounts(
            self.links + other.links,
            self.sure + other.sure,
            self.sure_hits + other.sure_hits,
            self.possible_hits + other.possible_hits,
        )

    @property
    def precision(self) -> float:
        """Precision in percent, 100 |A & P| / |A|; 0 without links."""
        return 100 * self.possible_hits / self.links if self.links else 0.0

    @property
    def recall(self) -> float:
        """Recall in percent, 100 |A & S| / |S|; 0 without sure links."""
        return 100 * self.sure_hits / self.sure if self.sure else 0.0

    @property
    def aer(self) -> float:
        """Alignment error rate in percent, see `error_rate`."""
        return float(error_rate(np.array(dataclasses.astuple(self), float)))


def count_links(
    hypotheses: Sequence[Collection[Link]], golds: Sequence[MarkedLinks]
) -> LinkCounts:
    """Alignment error rate: counts what alignments share with the gold ones, over a whole corpus.

    Raises:
      ValueError: If the numbers of sentence pairs differ, or are zero.

    Source:
      Och and Ney 2003, sec. 5.
    """
    _check_parallel(len(hypotheses), len(golds))
    counts = LinkCounts()
    for hypothesis, gold in zip(hypotheses, golds, strict=True):
        links = frozenset(hypothesis)  # a link that is listed twice counts once
        counts += LinkCounts(
            len(links), len(gold.sure), len(links & gold.sure), len(links & gold.possible)
        )
    return counts


def saer(matrices: Sequence[Float[np.ndarray, "_T _S"]], golds: Sequence[MarkedLinks]) -> float:
    """Soft alignment error rate (SAER): compares attention weights themselves with gold links.

    SAER = 100 (1 - (|M_A * M_S| + |M_A * M_P|) / (|M_A| + |M_S|)), |.| the sum of all elements

    Args:
      matrices: M_A of each sentence pair, `T S`, between words and without EOS.
      golds: The gold links of each; M_S and M_P are 1 where there is one, and P contains S.

    Returns:
      Percent; like AER, sums over the corpus are divided, not averaged over sentences.

    Raises:
      ValueError: If the numbers of sentence pairs differ, or are zero, or a gold link lies outside
        of its matrix.

    Source:
      Tu, Lu, Liu, Liu and Li 2016, on alignment quality.
    """
    _check_parallel(len(matrices), len(golds))
    return sum(map(count_weights, matrices, golds), LinkCounts()).aer


def count_weights(weights: Float[np.ndarray, "_T _S"], gold: MarkedLinks) -> LinkCounts:
    """Soft alignment error rate: counts one sentence pair, with weights in the place of links.

    Raises:
      ValueError: If a gold link lies outside of the weights.
    """
    hits = (_mass(weights, links) for links in (gold.sure, gold.possible))
    return LinkCounts(float(np.sum(weights)), len(gold.sure), *hits)


def _mass(weights: Float[np.ndarray, "T S"], links: Collection[Link]) -> float:
    """Sums the attention weights that fall on links."""
    # A link is (source, target), but a row of the weights is a target word.
    outside = [(s, t) for s, t in links if s >= weights.shape[1] or t >= weights.shape[0]]
    if outside:
        raise ValueError(
            f"matrices: expected weights for the link {min(outside)}, found shape {weights.shape}"
        )
    return float(sum(weights[target, source] for source, target in links))


def _check_parallel(hypotheses: int, golds: int) -> None:
    if hypotheses != golds:
        raise ValueError(f"expected as many golds as hypotheses, found {golds} and {hypotheses}")
    if not hypotheses:
        raise ValueError("expected at least one sentence pair, found none")
