"""Calls of the functions that parts are made of, and whether they return what they should.

What a function of a user's own returns is looked at while it is traced, so that it costs nothing
afterwards; a mistake is told in one line, with the function's place.
"""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from attention_jax.errors import PartError
from attention_jax.types import Array


def call_part(function: Callable, *arguments: Any, **named: Any) -> Any:
    """Calls a function of a part.

    Raises:
      PartError: If it does not take these arguments.
    """
    try:
        return function(*arguments, **named)
    except TypeError as error:
        if _takes(function, arguments, named):
            raise
        raise PartError(f"{_place_of(function)}: {error}") from None


def check_scores(score: Callable, scores: Array, shape: tuple[int, int]) -> None:
    """Raises `PartError` if scores are not one for each of T queries and S slots.

    Args:
      score: The function that has returned them.
      scores: What it has returned.
      shape: (T, S).
    """
    if scores.shape[-2:] != shape:
        raise PartError(
            f"{_place_of(score)}: expected scores that end with the axes (T, S) = {shape}, a query "
            f"and a slot, found shape {scores.shape}"
        )


def call_normalizer(
    normalizer: Callable, scores: Array, *arguments: Any, **named: Any
) -> tuple[Array, Mapping[str, Array]]:
    """Returns the weights that a normalizer makes of `scores`, and what it tells beside them.

    Raises:
      PartError: If it returns something else than such a pair, or weights of another shape.
    """
    made = call_part(normalizer, *arguments, **named)
    if not (isinstance(made, tuple) and len(made) == 2 and isinstance(made[1], Mapping)):
        found = f"a tuple of {len(made)}" if isinstance(made, tuple) else "one thing"
        raise PartError(
            f"{_place_of(normalizer)}: expected weights and a dict of what is told beside them, "
            f"found {found}"
        )
    if made[0].shape != scores.shape:
        raise PartError(
            f"{_place_of(normalizer)}: expected weights of the scores' shape {scores.shape}, found "
            f"{made[0].shape}"
        )
    return made


def _place_of(function: Callable) -> str:
    """Returns where a function is written: its file, its line and its name."""
    function = inspect.unwrap(function)
    name, code = getattr(function, "__name__", repr(function)), getattr(function, "__code__", None)
    return name if code is None else f"{code.co_filename}:{code.co_firstlineno}, {name}"


def _takes(function: Callable, arguments: tuple[Any, ...], named: Mapping[str, Any]) -> bool:
    try:
        inspect.signature(function).bind(*arguments, **named)
    except TypeError:
        return False
    except ValueError:  # its signature is not known
        pass
    return True
