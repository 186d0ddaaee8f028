"""Workloads: model sizes, sentences, and batches of them as PyTorch users make them.

Sentences and parameters travel between processes as `.npz` files, so that every contender trains
on the same sentences from the same weights whatever it is written in.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

PAD, BOS, EOS, UNK, FIRST_WORD = 0, 1, 2, 3, 4


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of the model: bidirectional GRU, additive attention, GRU with input feeding.

    Attributes:
      vocabulary: Symbols on either side.
      embedding: Depth of the embeddings.
      hidden: Depth of each encoder direction, of the decoder, of the additive scores' hidden
        layer, and of the attentional layer.
    """

    vocabulary: int = 8000
    embedding: int = 256
    hidden: int = 512


@dataclasses.dataclass(frozen=True)
class TransformerSizes:
    """Sizes of the Transformer: as many layers in the encoder as in the decoder.

    Attributes:
      vocabulary: Symbols on either side.
      depth: Depth of embeddings and layers.
      width: Depth of the feed-forward layers.
      heads: Of every attention.
      layers: In the encoder, and in the decoder.
    """

    vocabulary: int = 8000
    depth: int = 256
    width: int = 1024
    heads: int = 4
    layers: int = 3


def sizes_of(fields: Mapping[str, int]) -> Sizes | TransformerSizes:
    """Returns the sizes that a task names; Transformers are those with heads."""
    return (TransformerSizes if "heads" in fields else Sizes)(**fields)


@dataclasses.dataclass(frozen=True)
class Sentences:
    """Pairs of sentences, padded on the right; targets end in EOS and have no BOS.

    Attributes:
      source: int32 `N S`.
      source_lengths: `N`.
      target: int32 `N T`.
      target_lengths: `N`.
    """

    source: np.ndarray
    source_lengths: np.ndarray
    target: np.ndarray
    target_lengths: np.ndarray

    def __len__(self) -> int:
        """Returns the number of pairs."""
        return len(self.source)

    @classmethod
    def of_lists(
        cls, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]
    ) -> "Sentences":
        """Pads lists of ids."""
        return cls(*_padded(sources), *_padded(targets))

    @classmethod
    def random(
        cls, count: int, source_length: int, target_length: int, vocabulary: int, seed: int = 1
    ) -> "Sentences":
        """Draws sentences of equal length."""
        rng = np.random.default_rng(seed)
        source = rng.integers(FIRST_WORD, vocabulary, (count, source_length), np.int32)
        target = rng.integers(FIRST_WORD, vocabulary, (count, target_length), np.int32)
        source[:, -1] = target[:, -1] = EOS
        lengths = np.full(count, source_length), np.full(count, target_length)
        return cls(source, lengths[0], target, lengths[1])

    def first(self, count: int) -> "Sentences":
        """Returns the first pairs; contenders compare their losses on them."""
        return self.batch(np.arange(min(count, len(self))))

    def batch(self, rows: np.ndarray) -> "Sentences":
        """Returns some pairs, padded to the longest among them."""
        source_lengths, target_lengths = self.source_lengths[rows], self.target_lengths[rows]
        return Sentences(
            self.source[rows, : source_lengths.max()],
            source_lengths,
            self.target[rows, : target_lengths.max()],
            target_lengths,
        )

    def units(self) -> dict[str, int]:
        """Counts the work: real target tokens, EOS among them, and sentences."""
        return {"target tokens": int(self.target_lengths.sum()), "sentences": len(self)}

    def save(self, path: Path) -> None:
        """Writes an `.npz` file."""
        np.savez(path, **vars(self))

    @classmethod
    def load(cls, path: Path) -> "Sentences":
        """Reads what `save` wrote."""
        with np.load(path) as file:
            return cls(**{field.name: file[field.name] for field in dataclasses.fields(cls)})


def sinusoids(length: int, depth: int) -> np.ndarray:
    """Sinusoidal positions, sines at even channels: `length depth`, float32."""
    channels = np.arange(depth)
    angle = np.arange(length)[:, None] / 10000 ** (2 * (channels // 2) / depth)
    return np.where(channels % 2, np.cos(angle), np.sin(angle)).astype(np.float32)


def random_batches(sentences: Sentences, batch_size: int, seed: int = 0) -> list[np.ndarray]:
    """Deals shuffled sentences into batches; the last, smaller one is dropped."""
    order = np.random.default_rng(seed).permutation(len(sentences))
    return _chunks(order, batch_size)


def sorted_batches(
    sentences: Sentences, batch_size: int, seed: int = 0, pool: int = 100
) -> list[np.ndarray]:
    """Sorts pools of shuffled sentences by length before dealing, as bucket iterators do.

    Args:
      sentences: What to deal.
      batch_size: Sentences in a batch.
      seed: Of the shuffling.
      pool: Size of a pool, in batches.
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(sentences))
    batches = []
    for start in range(0, len(order), pool * batch_size):
        rows = order[start : start + pool * batch_size]
        by_length = np.lexsort((sentences.source_lengths[rows], sentences.target_lengths[rows]))
        batches += _chunks(rows[by_length], batch_size)
    return [batches[index] for index in rng.permutation(len(batches))]


def sample_evenly(sizes: Sequence[float], count: int) -> list[int]:
    """Picks `count` of some batches so that small and large ones are met as in the whole epoch.

    Args:
      sizes: How large each batch is.
      count: How many to pick.

    Returns:
      Indices: every n-th batch in the order of size.
    """
    order = np.argsort(np.asarray(sizes), kind="stable")
    if count >= len(order):
        return order.tolist()
    places = (np.arange(count) + 0.5) * len(order) / count
    return order[places.astype(int)].tolist()


def _chunks(rows: np.ndarray, size: int) -> list[np.ndarray]:
    return [rows[start : start + size] for start in range(0, len(rows) - size + 1, size)]


def _padded(sequences: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    lengths = np.array([len(sequence) for sequence in sequences])
    padded = np.full((len(sequences), lengths.max()), PAD, np.int32)
    for row, sequence in zip(padded, sequences, strict=True):
        row[: len(sequence)] = sequence
    return padded, lengths
