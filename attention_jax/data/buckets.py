"""Bucketing: chooses batch shapes from the lengths of the data.

A batch of shape (S, T) holds sources of at most S and targets of at most T tokens. With few shapes
there are few compilations, with many there is little padding; `fit_buckets` places a given number
of shapes where they save the most padding.
"""

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Int

# Cost of a target position in source positions: it has a softmax over the vocabulary besides.
_TARGET_COST = 3.0
# Cutting is greedy: to cut into more groups than wanted and merge some again leaves less padding.
_EXTRA_CUTS = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Bucket:
    """Bucket: examples that are batched together, and the shape of their batches.

    Attributes:
      source_length: S, source positions of a batch.
      target_length: T, target positions of a batch.
      rows: Examples in a batch of all processes together.
      members: Numbers of its examples in the data, ascending.
    """

    source_length: int
    target_length: int
    rows: int
    members: Int[np.ndarray, " N"]

    @property
    def num_batches(self) -> int:
        """Number of batches that hold every member once; the last may not be full."""
        return -(-len(self.members) // self.rows)


RowsOf = Callable[[Int[np.ndarray, " N"]], Int[np.ndarray, " N"]]


def fixed_rows(batch_size: int) -> RowsOf:
    """Batch size in sentences: returns the rule by which every batch has `batch_size` rows."""
    return lambda target_length: np.full_like(target_length, batch_size)


def rows_by_tokens(batch_size: int, multiple: int) -> RowsOf:
    """Batch size in tokens: returns the rule by which a batch has at most `batch_size` positions.

    Positions are those of the target. Rows are rounded down to a multiple of `multiple`; but there
    are at least `multiple` rows, even if that makes more positions.
    """
    return lambda target_length: np.maximum(batch_size // target_length // multiple, 1) * multiple


def fit_buckets(
    source_lengths: Int[np.ndarray, " N"],
    target_lengths: Int[np.ndarray, " N"],
    num_buckets: int,
    rows_of: RowsOf,
) -> list[Bucket]:
    """Bucketing: groups examples of similar lengths into at most `num_buckets` shapes.

    First the data is cut into more groups than wanted, each time at the source or target length
    that saves the most positions; then the pairs of groups that cost the fewest are merged. Counted
    are positions of padding and of empty rows in a group's last batch.

    Args:
      source_lengths: `N`, in tokens, at least 1 each.
      target_lengths: `N`.
      num_buckets: Maximum number of shapes.
      rows_of: Rule from target lengths to rows of a batch.

    Returns:
      Non-empty buckets, every example in exactly one, by increasing target length.
    """
    lengths = np.stack([source_lengths, target_lengths])
    groups = _cut_apart(lengths, num_buckets * _EXTRA_CUTS, rows_of)
    groups = _merge(lengths, groups, num_buckets, rows_of)
    buckets = [_bucket(lengths, group, rows_of) for group in groups]
    return sorted(buckets, key=lambda bucket: (bucket.target_length, bucket.source_length))


def padded_fraction(buckets: Sequence[Bucket], lengths: Int[np.ndarray, " N"], side: str) -> float:
    """Padding: computes the fraction of an epoch's positions, in [0, 1), that hold no token.

    Args:
      buckets: The buckets of `fit_buckets`.
      lengths: `N`, of the sources or targets.
      side: `source` or `target`.
    """
    positions = sum(
        bucket.num_batches * bucket.rows * getattr(bucket, f"{side}_length") for bucket in buckets
    )
    return 1.0 - float(sum(lengths[bucket.members].sum() for bucket in buckets)) / positions


def _cut_apart(lengths: Int[np.ndarray, "2 N"], count: int, rows_of: RowsOf) -> list[np.ndarray]:
    """Cuts the data into at most `count` groups, always where it saves the most."""
    groups = [np.arange(lengths.shape[1])]
    cuts = [_best_cut(lengths, groups[0], rows_of)]
    while len(groups) < count:
        best = int(np.argmax([cut.saving for cut in cuts]))
        if cuts[best].saving <= 0:
            break
        # The two parts take the group's place; only their cuts are new.
        groups[best : best + 1] = cuts[best].parts
        cuts[best : best + 1] = [_best_cut(lengths, part, rows_of) for part in cuts[best].parts]
    return groups


def _merge(
    lengths: Int[np.ndarray, "2 N"], groups: list[np.ndarray], count: int, rows_of: RowsOf
) -> list[np.ndarray]:
    """Merges the pair of groups that costs the least, until `count` are left."""
    while len(groups) > count:
        source, target = np.array([lengths[:, group].max(axis=1) for group in groups]).T
        sizes = np.array([len(group) for group in groups])
        first, second = np.triu_indices(len(groups), k=1)  # all pairs with first < second
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
    """A cut of a group, and the positions that it saves."""

    saving: float
    parts: tuple[np.ndarray, ...] = ()


def _best_cut(
    lengths: Int[np.ndarray, "2 N"], group: Int[np.ndarray, " G"], rows_of: RowsOf
) -> _Cut:
    """Finds the threshold on source or target length that saves the most positions of a group."""
    source, target = lengths[:, group]
    whole = _cost(np.array([len(group)]), source.max(keepdims=True), target.max(), rows_of)[0]
    best = _Cut(0.0)
    for axis in (1, 0):
        order = np.argsort(lengths[axis, group], kind="stable")
        ordered = lengths[axis, group[order]]
        # A group can be cut only between different lengths: the sizes of the lower part.
        sizes = np.flatnonzero(np.diff(ordered)) + 1
        if not len(sizes):
            continue
        # The longest source and target below and above every such cut, by running maxima.
        below = [np.maximum.accumulate(side[order])[sizes - 1] for side in (source, target)]
        above = [np.maximum.accumulate(side[order][::-1])[::-1][sizes] for side in (source, target)]
        costs = _cost(sizes, *below, rows_of) + _cost(len(group) - sizes, *above, rows_of)
        cheapest = int(np.argmin(costs))
        if whole - costs[cheapest] > best.saving:
            first, second = np.split(group[order], [sizes[cheapest]])
            best = _Cut(whole - costs[cheapest], (first, second))
    return best


def _cost(sizes, source_length, target_length, rows_of: RowsOf) -> np.ndarray:
    """Computes the cost of groups in source positions, padding and empty rows included."""
    rows = rows_of(np.broadcast_to(target_length, sizes.shape))
    batches = -(-sizes // rows)  # rounded up
    return batches * rows * (source_length + _TARGET_COST * target_length)


def _bucket(
    lengths: Int[np.ndarray, "2 N"], group: Int[np.ndarray, " G"], rows_of: RowsOf
) -> Bucket:
    source_length, target_length = (int(side.max()) for side in lengths[:, group])
    rows = int(rows_of(np.array([target_length]))[0])
    return Bucket(source_length, target_length, rows, np.sort(group))
