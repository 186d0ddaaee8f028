"""Bucketing: batch shapes chosen from the lengths of the data.

A batch of shape (S, T) holds sources of at most S and targets of at most T tokens. Few shapes mean
few compilations, many mean little padding; `fit_buckets` spends a given number of shapes where
they save the most padding.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

# A target position costs a softmax over the vocabulary on top of what a source position costs.
_TARGET_COST = 3.0
# Cutting into more groups than wanted and merging some again pads less than cutting alone.
_EXTRA_CUTS = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Bucket:
    """Examples that are batched together.

    Attributes:
      source_length: S, source positions of a batch.
      target_length: T, target positions of a batch.
      rows: Examples in a batch of all processes together.
      members: Positions of its examples in the data, ascending.
    """

    source_length: int
    target_length: int
    rows: int
    members: Int[np.ndarray, " N"]

    @property
    def num_batches(self) -> int:
        """Batches that hold every member once."""
        return -(-len(self.members) // self.rows)


RowsOf = Callable[[Int[np.ndarray, " N"]], Int[np.ndarray, " N"]]


def fixed_rows(batch_size: int) -> RowsOf:
    """Returns the rule by which every batch has `batch_size` rows."""
    return lambda target_length: np.full_like(target_length, batch_size)


def rows_by_tokens(batch_size: int, multiple: int) -> RowsOf:
    """Returns the rule by which a batch has about `batch_size` target positions.

    Rows are rounded down to a multiple of `multiple`, and are at least that.
    """
    return lambda target_length: np.maximum(batch_size // target_length // multiple, 1) * multiple


def fit_buckets(
    source_lengths: Int[np.ndarray, " N"],
    target_lengths: Int[np.ndarray, " N"],
    num_buckets: int,
    rows_of: RowsOf,
) -> list[Bucket]:
    """Groups examples of similar lengths into at most `num_buckets` shapes.

    Cuts the data into more groups than wanted, each time at the source or target length that
    saves the most, then merges the pairs of groups that cost the least. What is saved are
    positions: those of padding, and of rows left empty in the last batch of a group.

    Args:
      source_lengths: `N`, in tokens, at least 1 each.
      target_lengths: `N`.
      num_buckets: Groups at most.
      rows_of: From target lengths to rows of a batch.

    Returns:
      Non-empty buckets, every example in exactly one, by increasing target length.
    """
    lengths = np.stack([source_lengths, target_lengths])
    groups = _cut_apart(lengths, num_buckets * _EXTRA_CUTS, rows_of)
    groups = _merge(lengths, groups, num_buckets, rows_of)
    buckets = [_bucket(lengths, group, rows_of) for group in groups]
    return sorted(buckets, key=lambda bucket: (bucket.target_length, bucket.source_length))


def padded_fraction(buckets: Sequence[Bucket], lengths: Int[np.ndarray, " N"], side: str) -> float:
    """Returns the fraction of positions of an epoch, in [0, 1), that hold no token.

    Args:
      buckets: As `fit_buckets` returns them.
      lengths: `N`, of the side in question.
      side: `source` or `target`.
    """
    positions = sum(
        bucket.num_batches * bucket.rows * getattr(bucket, f"{side}_length") for bucket in buckets
    )
    return 1.0 - float(sum(lengths[bucket.members].sum() for bucket in buckets)) / positions


def _cut_apart(lengths: Int[np.ndarray, "2 N"], count: int, rows_of: RowsOf) -> list[np.ndarray]:
    groups = [np.arange(lengths.shape[1])]
    cuts = [_best_cut(lengths, groups[0], rows_of)]
    while len(groups) < count:
        best = int(np.argmax([cut.saving for cut in cuts]))
        if cuts[best].saving <= 0:
            break
        groups[best : best + 1] = cuts[best].parts
        cuts[best : best + 1] = [_best_cut(lengths, part, rows_of) for part in cuts[best].parts]
    return groups


def _merge(
    lengths: Int[np.ndarray, "2 N"], groups: list[np.ndarray], count: int, rows_of: RowsOf
) -> list[np.ndarray]:
    while len(groups) > count:
        source, target = np.array([lengths[:, group].max(axis=1) for group in groups]).T
        sizes = np.array([len(group) for group in groups])
        first, second = np.triu_indices(len(groups), k=1)
        alone = _cost(sizes, source, target, rows_of)
        together = _cost(
            sizes[first] + sizes[second],
            np.maximum(source[first], source[second]),
            np.maximum(target[first], target[second]),
            rows_of,
        )
        cheapest = int(np.argmin(together - alone[first] - alone[second]))
        into, gone = int(first[cheapest]), int(second[cheapest])
        groups[into] = np.concatenate([groups[into], groups.pop(gone)])
    return groups


@dataclasses.dataclass(frozen=True)
class _Cut:
    saving: float
    parts: tuple[np.ndarray, ...] = ()


def _best_cut(
    lengths: Int[np.ndarray, "2 N"], group: Int[np.ndarray, " G"], rows_of: RowsOf
) -> _Cut:
    """Finds the threshold on either length that saves the most positions of one group."""
    source, target = lengths[:, group]
    whole = _cost(np.array([len(group)]), source.max(keepdims=True), target.max(), rows_of)[0]
    best = _Cut(0.0)
    for axis in (1, 0):
        order = np.argsort(lengths[axis, group], kind="stable")
        ordered = lengths[axis, group[order]]
        sizes = np.flatnonzero(np.diff(ordered)) + 1
        if not len(sizes):
            continue
        below = [np.maximum.accumulate(side[order])[sizes - 1] for side in (source, target)]
        above = [np.maximum.accumulate(side[order][::-1])[::-1][sizes] for side in (source, target)]
        costs = _cost(sizes, *below, rows_of) + _cost(len(group) - sizes, *above, rows_of)
        cheapest = int(np.argmin(costs))
        if whole - costs[cheapest] > best.saving:
            first, second = np.split(group[order], [sizes[cheapest]])
            best = _Cut(whole - costs[cheapest], (first, second))
    return best


def _cost(sizes, source_length, target_length, rows_of: RowsOf) -> np.ndarray:
    rows = rows_of(np.broadcast_to(target_length, sizes.shape))
    batches = -(-sizes // rows)
    return batches * rows * (source_length + _TARGET_COST * target_length)


def _bucket(
    lengths: Int[np.ndarray, "2 N"], group: Int[np.ndarray, " G"], rows_of: RowsOf
) -> Bucket:
    source_length, target_length = (int(side.max()) for side in lengths[:, group])
    rows = int(rows_of(np.array([target_length]))[0])
    return Bucket(source_length, target_length, rows, np.sort(group))
