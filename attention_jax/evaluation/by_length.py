"""BLEU by source length: scores sentences in buckets, each with a bootstrap interval."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_statistics
from attention_jax.evaluation.bootstrap import bleu_interval
from attention_jax.evaluation.error_rates import check_parallel
from attention_jax.spaced_words import spaced_words


@dataclasses.dataclass(frozen=True)
class LengthBucket:
    """A length bucket: corpus BLEU of the sentences whose sources have `first` to `last` words.

    Attributes:
      first: Fewest source words.
      last: Most source words, or None where there is no upper end.
      sentences: How many sentences the bucket holds.
      bleu: Their corpus BLEU.
      low: Lower end of its bootstrap 95 % interval.
      high: Upper end of that interval.
    """

    first: int
    last: int | None
    sentences: int
    bleu: float
    low: float
    high: float

    @property
    def label(self) -> str:
        """The range of lengths in words, such as `11-20` or `>60`, for tables and axes."""
        return f">{self.first - 1}" if self.last is None else f"{self.first}-{self.last}"


def bleu_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    width: int = 10,
    buckets: int = 6,
    tokenize: str = "13a",
    lowercase: bool = False,
    resamples: int = 1000,
    seed: int = 0,
) -> list[LengthBucket]:
    """BLEU by source length: scores sources of 1 to 10 words, 11 to 20, and so on.

    Args:
      sources: The source sentences; words are what spaces separate.
      hypotheses: Their detokenised translations.
      references: The references of each.
      width: How many lengths share a bucket.
      buckets: How many buckets there are before the last, which takes all longer sources.
      tokenize: sacrebleu's tokenizer.
      lowercase: Whether case is ignored.
      resamples: How many test sets the bootstrap draws.
      seed: Of the bootstrap.

    Returns:
      The buckets that hold sentences, shortest first.

    Raises:
      ValueError: If the lists are empty or of unequal length, or an example has no reference.
    """
    check_parallel(hypotheses, references)
    if len(sources) != len(hypotheses):
        raise ValueError(f"expected {len(hypotheses)} sources, found {len(sources)}")
    statistics = bleu_statistics(hypotheses, references, tokenize=tokenize, lowercase=lowercase)
    words = np.array([len(spaced_words(source)) for source in sources])
    # Clipped below too: an empty source would come out as bucket -1.
    bucket_of = np.clip((words - 1) // width, 0, buckets)
    found = []
    for bucket in np.unique(bucket_of):
        rows = statistics[bucket_of == bucket]
        low, high = bleu_interval(rows, resamples, seed)
        found.append(
            LengthBucket(
                first=int(bucket) * width + 1,
                last=None if bucket == buckets else int(bucket + 1) * width,
                sentences=len(rows),
                bleu=float(bleu_from_statistics(rows.sum(axis=0))),
                low=low,
                high=high,
            )
        )
    return found
