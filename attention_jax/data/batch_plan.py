"""Batching: which examples make up which batch, a pure function of seed and epoch.

No process keeps a shuffled buffer. Whoever knows the seed, the epoch and the buckets knows every
batch of the epoch, so training resumes at any batch and on any number of processes.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from attention_jax.data.buckets import Bucket

FILLER = -1
_EXAMPLES, _BATCHES = 0, 1
# Lengths to which evaluation sources are padded, alike for all splits so that search is compiled
# once for each; beyond them, multiples of the last.
_EVAL_LENGTHS = (8, 12, 16, 24, 32, 48, 64, 96, 128)


@dataclasses.dataclass(frozen=True, eq=False)
class PlannedBatch:
    """One batch of all processes together.

    Attributes:
      indices: `rows`, positions in the data; `FILLER` in the rows that are left over at the end
        of a bucket.
      source_length: S, to which sources are padded.
      target_length: T, to which targets are padded.
    """

    indices: Int[np.ndarray, " rows"]
    source_length: int
    target_length: int


@dataclasses.dataclass(frozen=True)
class Share:
    """The rows of a batch that one of several processes has: a block of them, as long as others'.

    Attributes:
      process_index: The process, from 0.
      process_count: The processes.
      rows_multiple: What the length of a block is a multiple of.
    """

    process_index: int = 0
    process_count: int = 1
    rows_multiple: int = 1

    def of(self, planned: PlannedBatch) -> PlannedBatch:
        """Returns the block, where filler rows at the end of the batch have made it long enough."""
        rows = len(planned.indices)
        missing = -rows % (self.process_count * self.rows_multiple)
        filled = np.pad(planned.indices, (0, missing), constant_values=FILLER)
        block = filled.reshape(self.process_count, -1)[self.process_index]
        return dataclasses.replace(planned, indices=block)


def plan_epoch(seed: int, epoch: int, buckets: Sequence[Bucket]) -> list[PlannedBatch]:
    """Plans the batches of an epoch, every example once, in random order.

    Args:
      seed: Of the run.
      epoch: From 0.
      buckets: Of the training data; their number of batches is the same in every epoch.

    Returns:
      The batches in the order in which they are trained on.
    """
    batches = []
    for number, bucket in enumerate(buckets):
        order = permutation(len(bucket.members), seed, epoch, _EXAMPLES, number)
        indices = np.full(bucket.num_batches * bucket.rows, FILLER, np.int64)
        indices[: len(bucket.members)] = bucket.members[order]
        batches += [
            PlannedBatch(part, bucket.source_length, bucket.target_length)
            for part in indices.reshape(-1, bucket.rows)
        ]
    order = permutation(len(batches), seed, epoch, _BATCHES)
    return [batches[position] for position in order]


def plan_evaluation(
    source_lengths: Int[np.ndarray, " N"], target_lengths: Int[np.ndarray, " N"], rows: int
) -> list[PlannedBatch]:
    """Plans batches by increasing source length, in few shapes, every example once.

    Args:
      source_lengths: `N`, in tokens.
      target_lengths: `N`.
      rows: Examples in a batch; a source length that does not fill one joins the next.
    """
    order = np.lexsort((target_lengths, source_lengths))
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
    """Returns a random order of `size` things that depends on the key only.

    It sorts raw Philox output, which NumPy promises never to change, while the streams of its
    `Generator` may change between versions.
    """
    stream = np.random.Philox(np.random.SeedSequence([part % 2**64 for part in key]))
    return np.argsort(stream.random_raw(size), kind="stable")


def _rounded_up(lengths: Int[np.ndarray, " N"]) -> Int[np.ndarray, " N"]:
    """Rounds lengths up to the ladder of evaluation shapes."""
    ladder = np.array(_EVAL_LENGTHS)
    last = ladder[-1]
    places = np.minimum(np.searchsorted(ladder, lengths), len(ladder) - 1)
    return np.where(lengths <= last, ladder[places], -(-lengths // last) * last)
