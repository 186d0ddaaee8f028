"""BLEU from statistics of each sentence, for tables by length, intervals and comparisons.

Sums of these counts give the BLEU of any set of sentences, so that records need to hold nothing
else.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from attention_jax.errors import RunDirectoryError
from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_statistics
from attention_jax.evaluation.by_length import LengthBucket
from attention_jax.evaluation.seeds import corpus_score, seed_mean
from attention_jax.runs.files import replacing
from attention_jax.spaced_words import spaced_words
from attention_jax.sweeps.grid import GridRun

FILE = "sentence_bleu.npz"


@dataclasses.dataclass(frozen=True, eq=False)
class SentenceBleu:
    """BLEU statistics of a run's outputs for a split.

    Attributes:
      words: Number of words of each source, split at spaces.
      counts: BLEU statistics of each output; see `bleu_statistics`.
    """

    words: Int[np.ndarray, " N"]
    counts: Float[np.ndarray, "N F"]

    @classmethod
    def of(
        cls, sources: Sequence[str], outputs: Sequence[str], references: Sequence[Sequence[str]]
    ) -> "SentenceBleu":
        """Computes the statistics of outputs."""
        words = np.array([len(spaced_words(source)) for source in sources])
        return cls(words, bleu_statistics(outputs, references))

    @classmethod
    def concatenated(cls, parts: "Sequence[SentenceBleu]") -> "SentenceBleu":
        """Concatenates the sentences of several splits."""
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

    def score(self, sums: Float[np.ndarray, "*R F"]) -> Float[np.ndarray, "*R"]:
        """Computes BLEU from sums of counts."""
        return bleu_from_statistics(sums)

    @property
    def bleu(self) -> float:
        """Corpus BLEU of the sentences."""
        return corpus_score(self)


def save(path: Path, splits: Mapping[str, SentenceBleu]) -> None:
    """Writes the sentences of several splits to a file."""
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays(splits))


def arrays(splits: Mapping[str, SentenceBleu]) -> dict[str, np.ndarray]:
    """Returns the arrays of such a file: counts as integers, which compress well."""
    found = {}
    for name, sentences in splits.items():
        found[f"{name}.words"] = sentences.words.astype(np.uint16)
        found[f"{name}.counts"] = sentences.counts.astype(np.uint16)
    return found


def of_run(run: GridRun, split: str) -> SentenceBleu:
    """Reads the BLEU statistics of a finished run for a split.

    Raises:
      RunDirectoryError: If its record has none.
    """
    return from_arrays(run.arrays(FILE), split, run.name)


def from_arrays(found: Mapping[str, np.ndarray], split: str, where: str) -> SentenceBleu:
    """Returns the BLEU statistics of a split from the arrays that `save` has written.

    Args:
      found: The arrays.
      split: Name of the split.
      where: The file, for the message.

    Raises:
      RunDirectoryError: If there is no such split.
    """
    try:
        words, counts = found[f"{split}.words"], found[f"{split}.counts"]
    except KeyError as error:
        raise RunDirectoryError(f"{where}: expected the counts of {split!r}, {error}") from None
    return SentenceBleu(words.astype(np.int64), counts.astype(np.float64))


def by_length(seeds: Sequence[SentenceBleu], edges: Sequence[int]) -> list[LengthBucket]:
    """BLEU by source length: in buckets of up to `edges[0]` words, up to `edges[1]`, ..., longer.

    Args:
      seeds: The seeds of one system, all of them on the same sentences.
      edges: Largest number of words in each bucket but the last, increasing.

    Returns:
      The buckets that hold sentences.
    """
    buckets = []
    # Buckets 1 to e1, e1+1 to e2, ..., and an open last one.
    for first, last in zip([1, *(edge + 1 for edge in edges)], [*edges, None], strict=True):
        chosen = [seed.select(first, last) for seed in seeds]
        if len(chosen[0].words):
            found = seed_mean(chosen)
            buckets.append(
                LengthBucket(first, last, found.sentences, found.mean, found.low, found.high)
            )
    return buckets
