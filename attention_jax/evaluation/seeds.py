"""Means over seeds and bootstrap significance tests, for any score of sums over sentences.

BLEU, alignment error rate and all rates are functions of counts that add up over sentences, so
that records with the counts of each sentence suffice for confidence intervals and tests; and so do
the scores of resamples of these sentences, which are the same for all systems.
"""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.bleu import bleu_resamples as resample_sums
from attention_jax.evaluation.bootstrap import Difference, resampled_difference

RESAMPLES = 1000


@runtime_checkable
class SentenceCounts(Protocol):
    """Sentence-level counts of a run, from which a corpus score is computed.

    Hashed by identity, since resamples of it are cached.

    Attributes:
      counts: The contribution of each sentence to the score, `N F`.
    """

    counts: Float[np.ndarray, "N F"]

    def score(self, sums: Float[np.ndarray, "*R F"]) -> Float[np.ndarray, "*R"]:
        """Computes the score from sums of counts over sentences."""
        ...


@dataclasses.dataclass(frozen=True, eq=False)
class Resampled:
    """Bootstrap resamples of a run's score, drawn alike for all runs on the same sentences.

    Attributes:
      score: The score of all sentences.
      draws: The score of each resample.
      sentences: Number of sentences.
    """

    score: float
    draws: Float[np.ndarray, " R"]
    sentences: int


Scored = SentenceCounts | Resampled
Pair = tuple[Sequence[Scored], Sequence[Scored]]


@dataclasses.dataclass(frozen=True)
class SeedMean:
    """The score of a system over several seeds.

    Attributes:
      mean: Mean over seeds.
      deviation: Standard deviation over seeds (divided by n - 1), nan for a single seed.
      low: Lower end of the 95 % interval of the mean, by a bootstrap over sentences and seeds.
      high: Upper end of this interval.
      sentences: Number of sentences.
    """

    mean: float
    deviation: float
    low: float
    high: float
    sentences: int


@dataclasses.dataclass(frozen=True)
class Comparison(Difference):
    """The difference of two systems' means over seeds, B minus A; see `Difference`.

    Attributes:
      wins: Number of pairs of a seed of A and a seed of B in which B has the higher score.
      pairs: Number of all such pairs.
    """

    wins: int
    pairs: int


def corpus_score(sentences: SentenceCounts) -> float:
    """Computes the score of all sentences together."""
    return float(sentences.score(sentences.counts.sum(axis=0)))


def resampled(seed: Scored) -> Resampled:
    """Bootstrap resampling: scores a run on resamples of its sentences, alike for all runs."""
    return seed if isinstance(seed, Resampled) else _resampled(seed)


def seed_mean(seeds: Sequence[Scored]) -> SeedMean:
    """Summarizes the seeds of one system, all of them on the same sentences."""
    scores = [resampled(seed).score for seed in seeds]
    low, high = np.percentile(_draws(seeds, stream=0), [2.5, 97.5])
    return SeedMean(
        mean=float(np.mean(scores)),
        # ddof=1: the sample standard deviation, undefined for one seed.
        deviation=float(np.std(scores, ddof=1)) if len(scores) > 1 else float("nan"),
        low=float(low),
        high=float(high),
        sentences=resampled(seeds[0]).sentences,
    )


def compare(a: Sequence[Scored], b: Sequence[Scored]) -> Comparison:
    """Paired bootstrap test: whether two systems differ, resampling sentences and seeds.

    Both systems are scored on the same draws of sentences; their seeds are drawn independently, one
    fewer than there are, so that the variance of their mean is not underestimated.

      p = (1 + number of resamples with |d* - mean(d*)| >= |d|) / (1 + resamples)

    Args:
      a: The seeds of system A.
      b: The seeds of system B, on the same sentences.

    Source:
      Koehn 2004, sec. 4; the two-sided p-value as in Riezler and Maxwell 2005; the number of seeds
      drawn as in Rao and Wu 1988, sec. 2.
    """
    scores_a, scores_b = ([resampled(seed).score for seed in seeds] for seeds in (a, b))
    difference = float(np.mean(scores_b) - np.mean(scores_a))
    tested = resampled_difference(difference, _draws(b, stream=1) - _draws(a, stream=0))
    return Comparison(
        **dataclasses.asdict(tested),
        wins=sum(score_b > score_a for score_a in scores_a for score_b in scores_b),
        pairs=len(a) * len(b),
    )


def compare_gains(first: Pair, second: Pair) -> Difference:
    """Paired bootstrap test: whether a system gains more over its base in a second condition.

      difference = (B2 - A2) - (B1 - A1)

    All four are scored on the same draws of sentences; their seeds are drawn independently. For
    sources see `compare`.

    Args:
      first: The seeds of (base, system) in the first condition.
      second: The seeds of (base, system) in the second condition, on the same sentences.
    """
    gains, drawn = [], []
    for number, (base, system) in enumerate((first, second)):
        means = [np.mean([resampled(seed).score for seed in seeds]) for seeds in (base, system)]
        gains.append(means[1] - means[0])
        # A random stream of its own for each of the four.
        drawn.append(_draws(system, stream=2 * number + 1) - _draws(base, stream=2 * number))
    return resampled_difference(float(gains[1] - gains[0]), drawn[1] - drawn[0])


def _draws(seeds: Sequence[Scored], stream: int) -> Float[np.ndarray, " R"]:
    """Returns bootstrap resamples of the mean score over seeds, on resampled sentences.

    Means of n draws from n seeds have only (n - 1) / n of the variance of means of n seeds, two
    thirds with three seeds; means of n - 1 draws have all of it.
    """
    scores = np.stack([resampled(seed).draws for seed in seeds])  # K R, for K seeds
    rng = np.random.default_rng([stream, len(seeds)])
    chosen = rng.integers(len(seeds), size=(max(1, len(seeds) - 1), scores.shape[1]))
    # K R, K-1 R -> K-1 R -> R: resample r takes its seeds from column r, its draw of sentences.
    return np.take_along_axis(scores, chosen, axis=0).mean(axis=0)


@functools.lru_cache(maxsize=4096)  # a base is compared with every system, in every table
def _resampled(seed: SentenceCounts) -> Resampled:
    draws = seed.score(resample_sums(seed.counts, RESAMPLES, seed=0))
    return Resampled(corpus_score(seed), draws, len(seed.counts))
