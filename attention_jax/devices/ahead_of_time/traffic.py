"""Communication cost: bytes that a collective sends over a link, by ring algorithms.

A device of a ring of n sends to its neighbour, per collective,

    all-reduce          2 (n - 1) / n  b     b: bytes reduced, the same on every device
    all-gather            (n - 1) / n  b     b: bytes of the result
    reduce-scatter        (n - 1) / n  b     b: bytes reduced, n times those of the result
    all-to-all            (n - 1) / n  b     b: bytes of the result
    collective-permute                 b     b: bytes of the result

which no algorithm undercuts for the first four (an all-reduce is a reduce-scatter and an
all-gather). A link that carries both directions of a ring, or a torus with several axes, divides
the time and not the bytes.

From the placement of the parameters alone, a training step exchanges, for a parameter of p bytes
that is cut along the axes A of the mesh, while batches are cut along B (`data` and `fsdp`),

    all-reduce over B - A       of its gradient,               b = p / (devices along A)
    all-gather over A and B     of itself, forward, backward,  b = p / (devices along A - B), twice
    reduce-scatter over A and B of its gradient,               b = the same

What crosses `tensor` depends on the activations, and only the compiled program tells.

Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of
  workstations", section 3, for the all-reduce; the others are its halves.
"""

import collections
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

import jax

from attention_jax.devices.mesh import BATCH_AXES

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")

# Bytes sent as a multiple of the bytes of the result. That of a reduce-scatter is a share 1 / n of
# what was reduced, so that its factor (n - 1) / n becomes n - 1.
_OF_RESULT: Mapping[str, Callable[[int], float]] = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "all-gather": lambda n: (n - 1) / n,
    "reduce-scatter": lambda n: n - 1,
    "all-to-all": lambda n: (n - 1) / n,
    "collective-permute": lambda n: 1,
}


def bytes_on_link(kind: str, result_bytes: float, group: int) -> float:
    """Computes the bytes that a device sends for one collective.

    Args:
      kind: One of `KINDS`.
      result_bytes: Size of the result on one device.
      group: n, the number of devices that take part.
    """
    return _OF_RESULT[kind](group) * result_bytes if group > 1 else 0.0


@dataclasses.dataclass(frozen=True)
class Expected:
    """Communication of a step that follows from the placement of the parameters alone.

    Attributes:
      kind: One of `KINDS`.
      axes: The mesh axes that it goes over.
      link_bytes: Bytes that a device sends.
    """

    kind: str
    axes: tuple[str, ...]
    link_bytes: float


def expected_exchanges(params: Any, axes: Mapping[str, int]) -> list[Expected]:
    """Applies the formulas above to every parameter; the largest sum comes first.

    Args:
      params: Tree of shapes with placements.
      axes: Names and sizes of the mesh's axes.
    """
    totals = collections.Counter()

    def add(kind: str, names: list[str], result_bytes: float, times: int = 1) -> None:
        group = math.prod(axes[name] for name in names)
        if group > 1:
            names = [name for name in names if axes[name] > 1]
            totals[kind, tuple(names)] += times * bytes_on_link(kind, result_bytes, group)

    for leaf in jax.tree.leaves(params):
        size = leaf.size * leaf.dtype.itemsize
        cut = _axes_of(leaf.sharding)
        # "A and B" of the formulas: mesh axes that cut both this parameter and the batch.
        both = [name for name in BATCH_AXES if name in cut]
        whole = size / math.prod(axes[name] for name in cut if name not in both)
        part = size / math.prod(axes[name] for name in cut)
        add("all-reduce", [name for name in BATCH_AXES if name not in cut], part)
        add("all-gather", both, whole, times=2)  # forward and backward
        add("reduce-scatter", both, part)
    found = [Expected(*key, link_bytes) for key, link_bytes in totals.items()]
    return sorted(found, key=lambda each: -each.link_bytes)


def _axes_of(sharding: Any) -> set[str]:
    """Returns the mesh axes along which a placement splits an array."""
    cut = set()
    for entry in getattr(sharding, "spec", ()):
        # An entry of a PartitionSpec is an axis, several axes, or None.
        cut |= set(entry if isinstance(entry, tuple) else [] if entry is None else [entry])
    return cut
