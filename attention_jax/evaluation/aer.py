"""Alignment error rate, of links and of soft alignments."""

import dataclasses
from collections.abc import Collection, Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.pharaoh import Link, MarkedLinks


def error_rate(counts: Float[np.ndarray, "*R F"]) -> Float[np.ndarray, "*R"]:
    """Computes 100 (1 - (|A & S| + |A & P|) / (|A| + |S|)); 0 if there is nothing to find or wrong.

    Args:
      counts: |A|, |S|, |A & S| and |A & P|, in this order, or sums of them.
    """
    links, sure, sure_hits, possible_hits = np.moveaxis(counts, -1, 0)
    total = links + sure
    rate = 100 * (1 - (sure_hits + possible_hits) / np.where(total, total, 1))
    return np.where(total, rate, 0.0)


@dataclasses.dataclass(frozen=True)
class LinkCounts:
    """What precision, recall and AER are made of; counts of sentence pairs add up.

    Attributes:
      links: |A|, links of the hypothesis.
      sure: |S|, sure links of the gold alignment.
      sure_hits: |A & S|.
      possible_hits: |A & P|, where P contains S.
    """

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
        """100 |A & P| / |A|; 0 without links."""
        return 100 * self.possible_hits / self.links if self.links else 0.0

    @property
    def recall(self) -> float:
        """100 |A & S| / |S|; 0 without sure links."""
        return 100 * self.sure_hits / self.sure if self.sure else 0.0

    @property
    def aer(self) -> float:
        """Alignment error rate, see `error_rate`."""
        return float(error_rate(np.array(dataclasses.astuple(self), float)))


def count_links(
    hypotheses: Sequence[Collection[Link]], golds: Sequence[MarkedLinks]
) -> LinkCounts:
    """Compares alignments with gold alignments, pooled over the corpus.

    Args:
      hypotheses: Links of each sentence pair.
      golds: The gold links of each.

    Returns:
      Counts with precision, recall and AER in percent.

    Raises:
      ValueError: If there are not as many of one as of the other, or none.

    Source:
      Och and Ney 2003, sec. 5.
    """
    _check_parallel(len(hypotheses), len(golds))
    counts = LinkCounts()
    for hypothesis, gold in zip(hypotheses, golds, strict=True):
        links = frozenset(hypothesis)
        counts += LinkCounts(
            len(links), len(gold.sure), len(links & gold.sure), len(links & gold.possible)
        )
    return counts


def saer(matrices: Sequence[Float[np.ndarray, "_T _S"]], golds: Sequence[MarkedLinks]) -> float:
    """Computes the alignment error rate of attention weights, without making links of them.

    SAER = 100 (1 - (|M_A * M_S| + |M_A * M_P|) / (|M_A| + |M_S|)), |.| the sum of all elements

    Args:
      matrices: Weights of each sentence pair, `T S`, between words and without EOS.
      golds: The gold links of each; M_S and M_P are 1 where there is one, P contains S.

    Returns:
      Percent, pooled over the corpus as AER is.

    Raises:
      ValueError: If there are not as many of one as of the other, or none, or a gold link lies
        outside of its weights.

    Source:
      Tu, Lu, Liu, Liu and Li 2016, on alignment quality.
    """
    _check_parallel(len(matrices), len(golds))
    return sum(map(count_weights, matrices, golds), LinkCounts()).aer


def count_weights(weights: Float[np.ndarray, "_T _S"], gold: MarkedLinks) -> LinkCounts:
    """Counts what `saer` is made of for one sentence pair: weights in the place of links.

    Raises:
      ValueError: If a gold link lies outside of the weights.
    """
    hits = (_mass(weights, links) for links in (gold.sure, gold.possible))
    return LinkCounts(float(np.sum(weights)), len(gold.sure), *hits)


def _mass(weights: Float[np.ndarray, "T S"], links: Collection[Link]) -> float:
    """Sums the weights of links."""
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
