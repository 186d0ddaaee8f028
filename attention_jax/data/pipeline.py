"""Input pipeline: from examples to batches, endless for training, once through for evaluation.

A batch maps names to the arrays of the examples' fields, and `index` (int32 `B`) to their positions
in the split, -1 for rows that only fill the batch. The fields of texts are `source` and `target`,
int32 ids (`B S`, `B T`; ending in EOS, PAD to the right), with `source_mask` and `target_mask`,
which tell where they hold tokens. `S` and `T` come in few shapes; see `buckets` and `batch_plan`.
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
    """Returns the endless iterator over the training batches of one process.

    The batches of all processes, one below the other, are the batch of a single process: the same
    rows in the same order, so that whatever is drawn for a row is the same, too.

    Args:
      task: The task whose `train` split is used.
      data_config: Its config.
      seed: Decides the order of examples and batches.
      process_index: This process, from 0.
      process_count: Processes among which the rows of every batch are shared out.
      rows_multiple: What the rows of a process are filled up to a multiple of: the processes'
        batches then stay in line where devices or parts of the batch need their share.

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
    return TrainIterator(split, buckets, dropped, seed, share)


class TrainIterator:
    """Training batches without end; a thread prepares the next ones while one is used.

    Attributes:
      buckets: Shapes and their examples.
      lengths: Tokens of the source and of the target of every pair that is trained on.
      dropped: Training pairs left out as too long.
      batches_per_epoch: The same in every epoch.
    """

    def __init__(
        self,
        split: Split,
        buckets: Sequence[Bucket],
        dropped: int,
        seed: int,
        share: Share,
    ):
        self.buckets = tuple(buckets)
        members = np.concatenate([bucket.members for bucket in buckets])
        self.lengths = (split.lengths(SOURCE_AXIS)[members], split.lengths(TARGET_AXIS)[members])
        self.dropped = dropped
        self.batches_per_epoch = sum(bucket.num_batches for bucket in buckets)
        source = _BatchSource(split, self.buckets, seed, share)
        self._dataset = grain.MapDataset.source(source)
        self._start_at(0)

    @property
    def epoch(self) -> int:
        """Epoch, from 0, of the batch that comes next."""
        return self._next // self.batches_per_epoch

    def __iter__(self) -> Iterator[NumpyBatch]:
        return self

    def __next__(self) -> NumpyBatch:
        batch = next(self._batches)
        self._next += 1
        return batch

    def state(self) -> dict[str, int]:
        """Returns the position of the batch that comes next, as JSON can hold it."""
        epoch, batch = divmod(self._next, self.batches_per_epoch)
        return {"epoch": epoch, "batch": batch}

    def restore(self, state: Mapping[str, int]) -> None:
        """Goes to a position that `state` returned, in this run or one on other processes.

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
        self._next = position
        self._batches = iter(self._dataset[position:].to_iter_dataset(_READING))


class _BatchSource:
    """Random access to the batches of all epochs, one after the other."""

    def __init__(self, split, buckets, seed, share):
        self._split = split
        self._buckets = buckets
        self._seed = seed
        self._share = share
        self._batches_per_epoch = sum(bucket.num_batches for bucket in buckets)
        self._planned: tuple[int, list[PlannedBatch]] = (-1, [])

    def __len__(self) -> int:
        return sys.maxsize

    def __getitem__(self, position: int) -> NumpyBatch:
        epoch, number = divmod(position, self._batches_per_epoch)
        return collate(self._split, self._share.of(self._plan(epoch)[number]))

    def _plan(self, epoch: int) -> list[PlannedBatch]:
        planned_epoch, plan = self._planned
        if planned_epoch != epoch:
            plan = plan_epoch(self._seed, epoch, self._buckets)
            self._planned = (epoch, plan)
        return plan


def make_eval_batches(
    examples: Examples, data_config: DataConfig, process_index: int = 0, process_count: int = 1
) -> "EvalBatches":
    """Returns the batches of a split, every example once and whole however long it is.

    Args:
      examples: A split, or inputs whose outputs nobody knows.
      data_config: Its `eval_batch_size` counts.
      process_index: This process, from 0.
      process_count: Processes among which the rows of every batch are shared out.
    """
    lengths = examples.lengths(SOURCE_AXIS), examples.lengths(TARGET_AXIS)
    plan = plan_evaluation(*lengths, data_config.eval_batch_size)
    return EvalBatches(examples, plan, Share(process_index, process_count))


class EvalBatches:
    """Batches in order of length, in few shapes; can be iterated over again and again."""

    def __init__(self, examples: Examples, plan: Sequence[PlannedBatch], share: Share):
        self._examples = examples
        self._plan = plan
        self._share = share

    def __len__(self) -> int:
        return len(self._plan)

    def __iter__(self) -> Iterator[NumpyBatch]:
        return (collate(self._examples, self._share.of(planned)) for planned in self._plan)


def collate(examples: Examples, planned: PlannedBatch) -> NumpyBatch:
    """Makes the arrays of a planned batch."""
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
    if data_config.batch_unit == "sentences":
        return fixed_rows(data_config.batch_size)
    return rows_by_tokens(data_config.batch_size, data_config.batch_multiple)
