"""Gradient all-reduce: what devices that share a batch communicate within a step."""

import dataclasses
from collections.abc import Callable
from typing import Any

from attention_jax.types import Array, Params


def _same(value: Any) -> Any:
    return value


@dataclasses.dataclass(frozen=True)
class GradientExchange:
    """The communication of a train step; by default none, as on a single device.

    With any exchange a step computes what one device would compute for the whole batch.

    Attributes:
      gather: All-gather: parameters as they are stored become parameters as the model reads them.
      scatter: Reduce-scatter: the gradient of the gathered parameters is placed as the stored ones.
      add_up: All-reduce: adds up over devices what each has summed over its own rows.
      key: Turns the key of a step into the one by which a device draws for its own rows.
    """

    gather: Callable[[Params], Params] = _same
    scatter: Callable[[Params], Params] = _same
    add_up: Callable[[Any], Any] = _same
    key: Callable[[Array], Array] = _same
