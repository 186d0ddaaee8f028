"""Input pipeline: from examples to batches, endless for training, one pass for evaluation.

A batch maps names to arrays: those of the examples' fields, and `index` (int32 `B`), the numbers of
the examples in their split, or -1 for rows that only fill the batch. The fields of texts are
`source` and `target`, int32 ids (`B S`, `B T`; ending in EOS, PAD to the right), with
`source_mask` and `target_mask`, True where there are tokens. `S` and `T` take few values; see
`buckets` and `batch_plan`.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence

import grain
import numpy as np
from absl import logging

from attention_jax.data.batch_plan import (
    PlannedBatch,
    Share,
    plan_epoch,
    plan_evaluation,
    with_gradual_shapes,
)
from attention_jax.data.buckets import (
    Bucket,
    fit_buckets,
    fixed_rows,
    padded_fraction,
    rows_by_tokens,
)
from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Examples, Split
from attention_jax.data.field import SOURCE_AXIS, TARGET_AXIS
from attention_jax.data.loading import TaskData
from attention_jax.errors import DataError

NumpyBatch = dict[str, np.ndarray]

_READING = grain.ReadOptions(num_threads=1, prefetch_buffer_size=8)


def make_train_iterator(
    task: TaskData,
    data_config: DataConfig,
    seed: int,
    process_index: int = 0,
    process_count: int = 1,
    rows_multiple: int = 1,
) -> "TrainIterator":
    """Training batches: makes the endless iterator over those of one process.

    Concatenated, the batches of all processes are the batch of a single process: the same rows in
    the same order, so that what is drawn at random for a row is the same too.

    Args:
      task: The data, of which the `train` split is used.
      data_config: Its config.
      seed: Determines the order of examples and batches.
      process_index: Number of this process, from 0.
      process_count: Number of processes, which share out the rows of every batch.
      rows_multiple: The rows of a process are filled up to a multiple of this, so that they divide
        evenly among its devices and accumulation steps.

    Raises:
      DataError: If every example is longer than the config allows.
    """
    split = task.split("train")
    source_lengths, target_lengths = split.lengths(SOURCE_AXIS), split.lengths(TARGET_AXIS)
    kept = np.flatnonzero(
        (source_lengths <= data_config.max_source_length)
        & (target_lengths <= data_config.max_target_length)
    )
    dropped = len(split) - len(kept)
    if not len(kept):
        raise DataError(
            f"data: expected training pairs of at most {data_config.max_source_length} and "
            f"{data_config.max_target_length} tokens, found none among {len(split)}"
        )
    if dropped:
        logging.info("Dropped %d of %d training pairs as too long", dropped, len(split))
    # Buckets are fitted to the kept pairs, whose numbers are put back into those of the split.
    buckets = [
        Bucket(bucket.source_length, bucket.target_length, bucket.rows, kept[bucket.members])
        for bucket in fit_buckets(
            source_lengths[kept],
            target_lengths[kept],
            data_config.num_buckets,
            _rows_rule(data_config),
        )
    ]
    logging.info(
        "%d training pairs in %d batch shapes; padding: %.1f %% of source, %.1f %% of target",
        len(kept),
        len(buckets),
        100 * padded_fraction(buckets, source_lengths, "source"),
        100 * padded_fraction(buckets, target_lengths, "target"),
    )
    share = Share(process_index, process_count, rows_multiple)
    return TrainIterator(split, buckets, dropped, seed, share, data_config.gradual_shapes)


class TrainIterator:
    """Endless training batches, prefetched by a thread.

    Attributes:
      buckets: The shapes of batches and their examples.
      lengths: Lengths in tokens of the (first) source and of the target of every pair trained on.
      dropped: Number of training pairs left out as too long.
      batches_per_epoch: Number of batches, the same in every epoch.
    """

    def __init__(
        self,
        split: Split,
        buckets: Sequence[Bucket],
        dropped: int,
        seed: int,
        share: Share,
        gradual_shapes: bool = False,
    ):
        self.buckets = tuple(buckets)
        members = np.concatenate([bucket.members for bucket in buckets])
        axes = SOURCE_AXIS, TARGET_AXIS
        self.lengths = tuple(split.first_lengths(axis)[members] for axis in axes)
        self.dropped = dropped
        self.batches_per_epoch = sum(bucket.num_batches for bucket in buckets)
        self._source = _BatchSource(split, self.buckets, seed, share, gradual_shapes)
        self._dataset = grain.MapDataset.source(self._source)
        self._start_at(0)

    @property
    def epoch(self) -> int:
        """Epoch of the next batch, from 0."""
        return self._next // self.batches_per_epoch

    def __iter__(self) -> Iterator[NumpyBatch]:
        return self

    def __next__(self) -> NumpyBatch:
        batch = next(self._batches)
        self._next += 1
        return batch

    def one_of_each_shape(self, count: int) -> Iterator[NumpyBatch]:
        """Bucketing: yields the first batch of each shape among the next `count`, in their order.

        The iterator stays where it is.
        """
        # All shapes are in a whole epoch, of which there is one in twice as many batches.
        ahead = range(self._next, self._next + min(count, 2 * self.batches_per_epoch))
        seen = set()
        for position in ahead:
            shape = self._source.shape(position)
            if shape not in seen:
                seen.add(shape)
                yield self._source[position]

    def state(self) -> dict[str, int]:
        """Data position: returns that of the next batch, for a checkpoint."""
        epoch, batch = divmod(self._next, self.batches_per_epoch)
        return {"epoch": epoch, "batch": batch}

    def restore(self, state: Mapping[str, int]) -> None:
        """Data position: continues from one that `state` returned, on any number of processes.

        Raises:
          DataError: If there is no such batch.
        """
        epoch, batch = int(state["epoch"]), int(state["batch"])
        if epoch < 0 or not 0 <= batch < self.batches_per_epoch:
            raise DataError(
                f"data position: expected a batch below {self.batches_per_epoch}, "
                f"found epoch {epoch}, batch {batch}; has the data changed?"
            )
        self._start_at(epoch * self.batches_per_epoch + batch)

    def _start_at(self, position: int) -> None:
        # Random access makes resuming cheap: no batch before the position is made.
        self._next = position
        self._batches = iter(self._dataset[position:].to_iter_dataset(_READING))


class _BatchSource:
    """Random access to the batches of all epochs, one epoch after the other, for grain."""

    def __init__(self, split, buckets, seed, share, gradual_shapes):
        self._split = split
        self._buckets = buckets
        self._seed = seed
        self._share = share
        self._gradual_shapes = gradual_shapes
        self._batches_per_epoch = sum(bucket.num_batches for bucket in buckets)
        self._planned: tuple[int, list[PlannedBatch]] = (-1, [])  # of the last epoch asked for

    def __len__(self) -> int:
        return sys.maxsize  # grain wants a length; training never gets there

    def __getitem__(self, position: int) -> NumpyBatch:
        return collate(self._split, self._share.of(self._planned_at(position)))

    def shape(self, position: int) -> tuple[int, int, int]:
        """Returns rows, source and target positions of a batch."""
        return self._planned_at(position).shape

    def _planned_at(self, position: int) -> PlannedBatch:
        epoch, number = divmod(position, self._batches_per_epoch)
        return self._plan(epoch)[number]

    def _plan(self, epoch: int) -> list[PlannedBatch]:
        planned_epoch, plan = self._planned
        if planned_epoch != epoch:
            plan = plan_epoch(self._seed, epoch, self._buckets)
            if epoch == 0 and self._gradual_shapes:
                plan = with_gradual_shapes(plan)
            self._planned = (epoch, plan)
        return plan


def make_eval_batches(
    examples: Examples, data_config: DataConfig, process_index: int = 0, process_count: int = 1
) -> "EvalBatches":
    """Evaluation batches: returns those of a split, every example once and never truncated.

    Args:
      examples: A split, or inputs of a search.
      data_config: Its `eval_batch_size` is used.
      process_index: Number of this process, from 0.
      process_count: Number of processes, which share out the rows of every batch.
    """
    lengths = examples.lengths(SOURCE_AXIS), examples.lengths(TARGET_AXIS)
    plan = plan_evaluation(*lengths, data_config.eval_batch_size)
    return EvalBatches(examples, plan, Share(process_index, process_count))


class EvalBatches:
    """Evaluation batches in order of length, in few shapes; can be iterated over repeatedly."""

    def __init__(self, examples: Examples, plan: Sequence[PlannedBatch], share: Share):
        self._examples = examples
        self._plan = plan
        self._share = share

    def __len__(self) -> int:
        return len(self._plan)

    def __iter__(self) -> Iterator[NumpyBatch]:
        return (collate(self._examples, self._share.of(planned)) for planned in self._plan)


def collate(examples: Examples, planned: PlannedBatch) -> NumpyBatch:
    """Collation: makes the arrays of a planned batch from its examples."""
    lengths = {
        **examples.own_lengths,
        SOURCE_AXIS: planned.source_length,
        TARGET_AXIS: planned.target_length,
    }
    batch: NumpyBatch = {}
    for field in examples.fields:
        batch |= field.collate(examples.columns[field.name], planned.indices, lengths)
    return {**batch, "index": planned.indices.astype(np.int32)}


def _rows_rule(data_config: DataConfig):
    """Returns the rule for the rows of a batch, by sentences or by tokens."""
    if data_config.batch_unit == "sentences":
        return fixed_rows(data_config.batch_size)
    return rows_by_tokens(data_config.batch_size, data_config.batch_multiple)
