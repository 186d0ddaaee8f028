"""Divergence checks: parameters, losses and outputs that are not finite are refused in one line.

Parameters may be finite and still so large that a forward pass overflows, so the outputs of a model
are checked too. A beam search returns nothing if every score is NaN.
"""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from attention_jax.errors import DivergenceError
from attention_jax.types import Params


def check_losses(values: Mapping[str, float]) -> None:
    """Raises `DivergenceError` for the first mean loss that is not finite."""
    for name, value in values.items():
        if not math.isfinite(value):
            raise DivergenceError(f"{name} is {value}")


def check_outputs(found: Sequence[Sequence[Any]]) -> None:
    """Raises `DivergenceError` if a source has no hypotheses, or some of probability NaN.

    Args:
      found: For each source its hypotheses, with their `log_prob`.
    """
    for number, hypotheses in enumerate(found, start=1):
        if not hypotheses or any(math.isnan(each.log_prob) for each in hypotheses):
            raise DivergenceError(f"the probabilities of the output of source {number} are nan")


def check_parameters(params: Params) -> None:
    """Raises `DivergenceError` for the first parameter that holds a number that is not finite."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        numbers = np.asarray(leaf)
        is_finite = np.isfinite(numbers)
        if not is_finite.all():
            name = ".".join(str(entry.key) for entry in path)
            raise DivergenceError(f"parameter {name} holds {numbers[~is_finite][0]}")


@contextlib.contextmanager
def said_of(what: str) -> Iterator[None]:
    """Adds to a divergence in the block where it was found, such as in which checkpoint."""
    try:
        yield
    except DivergenceError as error:
        raise DivergenceError(f"{what}: {error}") from None
