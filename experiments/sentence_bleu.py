"""BLEU of several seeds, from what it needs of each sentence.

Sums of these counts give the BLEU of any set of sentences, so that records that hold them are
enough for every table: by length, with intervals, and for comparing any two systems.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_resamples, bleu_statistics
from attention_jax.evaluation.by_length import LengthBucket
from attention_jax.training.files import replacing

FILE = "sentence_bleu.npz"
RESAMPLES = 1000


@dataclasses.dataclass(frozen=True, eq=False)
class SentenceBleu:
    """The outputs of a run for a split, as BLEU sees them.

    Attributes:
      words: Of each source, split at spaces.
      counts: Of each output, as `bleu_statistics` has them.
    """

    words: Int[np.ndarray, " N"]
    counts: Float[np.ndarray, "N F"]

    @classmethod
    def of(
        cls, sources: Sequence[str], outputs: Sequence[str], references: Sequence[Sequence[str]]
    ) -> "SentenceBleu":
        """Counts."""
        words = np.array([len(source.split()) for source in sources])
        return cls(words, bleu_statistics(outputs, references))

    @classmethod
    def concatenated(cls, parts: "Sequence[SentenceBleu]") -> "SentenceBleu":
        """Puts several together."""
        return cls(
            np.concatenate([part.words for part in parts]),
            np.concatenate([part.counts for part in parts]),
        )

    def select(self, first: int, last: int | None) -> "SentenceBleu":
        """Returns the sentences whose sources have `first` to `last` words."""
        chosen = self.words >= first
        if last is not None:
            chosen &= self.words <= last
        return SentenceBleu(self.words[chosen], self.counts[chosen])

    @property
    def bleu(self) -> float:
        """Their corpus BLEU."""
        return float(bleu_from_statistics(self.counts.sum(axis=0)))


@dataclasses.dataclass(frozen=True)
class SeedMean:
    """The BLEU of a system.

    Attributes:
      mean: Over seeds.
      deviation: Standard deviation over seeds (divided by n - 1), nan for a single seed.
      low: Lower end of the 95 % interval of the mean, by a bootstrap over sentences and seeds.
      high: Its upper end.
      sentences: How many there are.
    """

    mean: float
    deviation: float
    low: float
    high: float
    sentences: int


@dataclasses.dataclass(frozen=True)
class Comparison:
    """How much better system B is than system A.

    Attributes:
      difference: Mean BLEU of B minus mean BLEU of A.
      low: Lower end of its 95 % interval, by a bootstrap over sentences and seeds.
      high: Its upper end.
      p_value: Probability of a difference at least this large, either way, if there were none.
      wins: Pairs of a seed of A and a seed of B of which B has the higher BLEU.
      pairs: All of these pairs.
    """

    difference: float
    low: float
    high: float
    p_value: float
    wins: int
    pairs: int


def save(path: Path, splits: Mapping[str, SentenceBleu]) -> None:
    """Writes the sentences of several splits to a file."""
    arrays = {}
    for name, sentences in splits.items():
        arrays[f"{name}.words"] = sentences.words.astype(np.uint16)
        arrays[f"{name}.counts"] = sentences.counts.astype(np.uint16)
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays)


def load(path: Path, split: str) -> SentenceBleu:
    """Reads the sentences of a split.

    Raises:
      RunDirectoryError: If there is no such file or split.
    """
    try:
        with np.load(path) as file:
            words, counts = file[f"{split}.words"], file[f"{split}.counts"]
    except (OSError, KeyError, ValueError) as error:
        raise RunDirectoryError(f"{path}: expected the counts of {split!r}, {error}") from None
    return SentenceBleu(words.astype(np.int64), counts.astype(np.float64))


def seed_mean(seeds: Sequence[SentenceBleu]) -> SeedMean:
    """Summarizes the seeds of one system, all of them on the same sentences."""
    scores = [seed.bleu for seed in seeds]
    low, high = np.percentile(_draws(seeds, stream=0), [2.5, 97.5])
    return SeedMean(
        mean=float(np.mean(scores)),
        deviation=float(np.std(scores, ddof=1)) if len(scores) > 1 else float("nan"),
        low=float(low),
        high=float(high),
        sentences=len(seeds[0].words),
    )


def by_length(seeds: Sequence[SentenceBleu], edges: Sequence[int]) -> list[LengthBucket]:
    """Computes mean BLEU for sources of up to `edges[0]` words, up to `edges[1]`, ..., and longer.

    Args:
      seeds: The seeds of one system, all of them on the same sentences.
      edges: Most words of each bucket but the last, increasing.

    Returns:
      The buckets that hold sentences.
    """
    buckets = []
    for first, last in zip([1, *(edge + 1 for edge in edges)], [*edges, None], strict=True):
        chosen = [seed.select(first, last) for seed in seeds]
        if len(chosen[0].words):
            found = seed_mean(chosen)
            buckets.append(
                LengthBucket(first, last, found.sentences, found.mean, found.low, found.high)
            )
    return buckets


def compare(a: Sequence[SentenceBleu], b: Sequence[SentenceBleu]) -> Comparison:
    """Tests whether two systems differ, by a paired bootstrap over sentences and over seeds.

    Both systems meet the same draws of sentences; the seeds of each are drawn independently.
    p = (1 + number of resamples with |d* - mean(d*)| >= |d|) / (1 + resamples)

    Args:
      a: The seeds of system A.
      b: The seeds of system B, on the same sentences.

    Source:
      Koehn 2004, sec. 4; the two-sided p-value as in Riezler and Maxwell 2005.
    """
    scores_a, scores_b = ([seed.bleu for seed in seeds] for seeds in (a, b))
    difference = float(np.mean(scores_b) - np.mean(scores_a))
    drawn = _draws(b, stream=1) - _draws(a, stream=0)
    low, high = np.percentile(drawn, [2.5, 97.5])
    extreme = np.abs(drawn - drawn.mean()) >= abs(difference) - 1e-12
    return Comparison(
        difference=difference,
        low=float(low),
        high=float(high),
        p_value=float((1 + extreme.sum()) / (1 + RESAMPLES)),
        wins=sum(score_b > score_a for score_a in scores_a for score_b in scores_b),
        pairs=len(a) * len(b),
    )


def _draws(seeds: Sequence[SentenceBleu], stream: int) -> Float[np.ndarray, " R"]:
    """Returns the mean BLEU of seeds drawn with replacement on sentences drawn with replacement."""
    scores = np.stack(
        [bleu_from_statistics(bleu_resamples(seed.counts, RESAMPLES, seed=0)) for seed in seeds]
    )
    rng = np.random.default_rng([stream, len(seeds)])
    chosen = rng.integers(len(seeds), size=scores.shape)
    return np.take_along_axis(scores, chosen, axis=0).mean(axis=0)
