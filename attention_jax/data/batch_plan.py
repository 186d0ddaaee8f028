"""Batching and shuffling: the batches of an epoch as a pure function of seed and epoch.

There is no shuffle buffer. Seed, epoch and buckets determine every batch of an epoch, so training
can resume at any batch and on any number of processes.
"""

import dataclasses
import heapq
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from attention_jax.data.buckets import Bucket

FILLER = -1
_EXAMPLES, _BATCHES = 0, 1  # tell the keys of the two shuffles apart
# Batches from one new shape to the next: about as many steps as last until one more is compiled.
_MOST_BETWEEN_SHAPES = 16
# Lengths to which sources and targets are padded in evaluation, the same for all splits, so that a
# search is compiled once for each; longer ones are padded to multiples of the last.
_EVAL_LENGTHS = (8, 12, 16, 24, 32, 48, 64, 96, 128)


@dataclasses.dataclass(frozen=True, eq=False)
class PlannedBatch:
    """A batch of all processes together, before its arrays are made.

    Attributes:
      indices: `rows`, numbers of examples; `FILLER` in the empty rows of a bucket's last batch.
      source_length: S, to which sources are padded.
      target_length: T, to which targets are padded.
    """

    indices: Int[np.ndarray, " rows"]
    source_length: int
    target_length: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Rows, source and target positions."""
        return len(self.indices), self.source_length, self.target_length


@dataclasses.dataclass(frozen=True)
class Share:
    """Data parallelism: the block of a batch's rows that one process has, as long as the others'.

    Attributes:
      process_index: Number of the process, from 0.
      process_count: Number of processes.
      rows_multiple: The length of a block is a multiple of this.
    """

    process_index: int = 0
    process_count: int = 1
    rows_multiple: int = 1

    def of(self, planned: PlannedBatch) -> PlannedBatch:
        """Returns the process's block; filler rows behind the batch make all blocks as long."""
        rows = len(planned.indices)
        missing = -rows % (self.process_count * self.rows_multiple)
        filled = np.pad(planned.indices, (0, missing), constant_values=FILLER)
        # rows -> processes rows
        block = filled.reshape(self.process_count, -1)[self.process_index]
        return dataclasses.replace(planned, indices=block)


def plan_epoch(seed: int, epoch: int, buckets: Sequence[Bucket]) -> list[PlannedBatch]:
    """Shuffling: plans the batches of an epoch, every example once, in random order.

    Args:
      seed: Seed of the run.
      epoch: Number of the epoch, from 0.
      buckets: Buckets of the training data; their number of batches is the same in every epoch.

    Returns:
      The batches in the order of training.
    """
    batches = []
    for number, bucket in enumerate(buckets):
        order = permutation(len(bucket.members), seed, epoch, _EXAMPLES, number)
        indices = np.full(bucket.num_batches * bucket.rows, FILLER, np.int64)
        indices[: len(bucket.members)] = bucket.members[order]
        batches += [
            PlannedBatch(part, bucket.source_length, bucket.target_length)
            for part in indices.reshape(-1, bucket.rows)  # batches rows
        ]
    order = permutation(len(batches), seed, epoch, _BATCHES)
    return [batches[position] for position in order]


def with_gradual_shapes(batches: Sequence[PlannedBatch]) -> list[PlannedBatch]:
    """Bucketing: reorders an epoch's batches so that their shapes come in one after another.

    It begins with batches of the most frequent shape, and the next most frequent comes in every
    `min(N // K, 16)` batches, for `N` batches of `K` shapes. Among the shapes that have come in the
    order is kept, so that batches that were held back catch up: once all have come in, nearly the
    same batches have been trained on as without. Programs for later shapes can thus be compiled
    while earlier ones are used.

    Args:
      batches: Of an epoch, in random order.

    Returns:
      The same batches.
    """
    places: dict[tuple[int, int, int], list[int]] = {}
    for place, batch in enumerate(batches):
        places.setdefault(batch.shape, []).append(place)
    # Python's sort is stable: of shapes as frequent, the one that comes first in the order given.
    coming = iter(sorted(places.values(), key=len, reverse=True))
    # No more than the mean of a shape's batches: the most frequent have enough of them to last.
    gap = min(len(batches) // max(len(places), 1), _MOST_BETWEEN_SHAPES)
    waiting: list[int] = []
    order = []
    for number in range(len(batches)):
        if number % gap == 0:
            for place in next(coming, ()):
                heapq.heappush(waiting, place)
        order.append(heapq.heappop(waiting))
    return [batches[place] for place in order]


def plan_evaluation(
    source_lengths: Int[np.ndarray, " N"], target_lengths: Int[np.ndarray, " N"], rows: int
) -> list[PlannedBatch]:
    """Batching for evaluation: plans batches by increasing source length, every example once.

    Args:
      source_lengths: `N`, in tokens.
      target_lengths: `N`.
      rows: Examples in a batch. If too few sources have one padded length to fill a batch, they are
        batched with those of the next.
    """
    order = np.lexsort((target_lengths, source_lengths))  # the last key sorts first
    padded_lengths = _rounded_up(source_lengths[order])
    batches = []
    group = order[:0]
    for length in np.unique(padded_lengths):
        group = np.concatenate([group, order[padded_lengths == length]])
        if len(group) < rows and length < padded_lengths[-1]:
            continue
        target_length = int(_rounded_up(target_lengths[group]).max())
        indices = np.full(-(-len(group) // rows) * rows, FILLER, np.int64)
        indices[: len(group)] = group
        batches += [
            PlannedBatch(part, int(length), target_length) for part in indices.reshape(-1, rows)
        ]
        group = order[:0]
    return batches


def permutation(size: int, *key: int) -> Int[np.ndarray, " size"]:
    """Random permutation of `size` numbers, determined by the key alone.

    It sorts raw output of Philox, which NumPy promises never to change; the methods of its
    `Generator` may give other numbers in other versions.
    """
    stream = np.random.Philox(np.random.SeedSequence([part % 2**64 for part in key]))
    return np.argsort(stream.random_raw(size), kind="stable")


def _rounded_up(lengths: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """Rounds lengths up to those to which evaluation pads."""
    ladder = np.array(_EVAL_LENGTHS)
    last = ladder[-1]
    places = np.minimum(np.searchsorted(ladder, lengths), len(ladder) - 1)
    return np.where(lengths <= last, ladder[places], -(-lengths // last) * last)
