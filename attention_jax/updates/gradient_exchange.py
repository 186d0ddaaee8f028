"""Gradient all-reduce: what the devices that share a batch tell one another within a step."""

import dataclasses
from collections.abc import Callable
from typing import Any

from attention_jax.types import Array, Params


def _same(value: Any) -> Any:
    return value


@dataclasses.dataclass(frozen=True)
class GradientExchange:
    """What a step does beyond its own rows, nothing by default.

    It says nothing about values: with any exchange, a step computes what one device would for the
    whole batch.

    Attributes:
      gather: From parameters as they are stored to parameters as the model reads them.
      scatter: From the gradient with respect to those to its form with the stored parameters.
      add_up: Adds up, over the devices, sums over each one's rows.
      key: From the key of a step to the one by which a device draws for its rows.
    """

    gather: Callable[[Params], Params] = _same
    scatter: Callable[[Params], Params] = _same
    add_up: Callable[[Any], Any] = _same
    key: Callable[[Array], Array] = _same
