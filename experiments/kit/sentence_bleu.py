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
from attention_jax.evaluation.bleu import bleu_from_statistics, bleu_statistics
from attention_jax.evaluation.by_length import LengthBucket
from attention_jax.runs.files import replacing
from attention_jax.spaced_words import spaced_words
from experiments.kit.grid import Run
from experiments.kit.seeds import corpus_score, seed_mean

FILE = "sentence_bleu.npz"


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
        words = np.array([len(spaced_words(source)) for source in sources])
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

    def score(self, sums: Float[np.ndarray, "*R F"]) -> Float[np.ndarray, "*R"]:
        """Computes BLEU from sums of counts."""
        return bleu_from_statistics(sums)

    @property
    def bleu(self) -> float:
        """Their corpus BLEU."""
        return corpus_score(self)


def save(path: Path, splits: Mapping[str, SentenceBleu]) -> None:
    """Writes the sentences of several splits to a file."""
    with replacing(path) as temporary:
        np.savez_compressed(temporary, **arrays(splits))


def arrays(splits: Mapping[str, SentenceBleu]) -> dict[str, np.ndarray]:
    """Returns the arrays of the file."""
    found = {}
    for name, sentences in splits.items():
        found[f"{name}.words"] = sentences.words.astype(np.uint16)
        found[f"{name}.counts"] = sentences.counts.astype(np.uint16)
    return found


def of_run(run: Run, split: str) -> SentenceBleu:
    """Reads the sentences of a split that a finished run has translated.

    Raises:
      RunDirectoryError: If its record has none.
    """
    return from_arrays(run.arrays(FILE), split, run.name)


def from_arrays(found: Mapping[str, np.ndarray], split: str, where: str) -> SentenceBleu:
    """Returns the sentences of a split that `save` has written.

    Args:
      found: The arrays of the file.
      split: One of its splits.
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
