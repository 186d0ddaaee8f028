"""NumPy archives, whoever wrote them: read, and checked for the arrays that they must have."""

import io
from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from attention_jax.errors import DataError, UserError

_NAMES = {"i": "whole numbers", "u": "whole numbers", "f": "numbers", "U": "texts"}


class Form(NamedTuple):
    """What an array is like.

    Attributes:
      kinds: NumPy's letters for what it may hold: `iu` for whole numbers, `f`, or `U` for text.
      axes: How many axes it has.
    """

    kinds: str
    axes: int


def read_arrays(
    content: bytes, forms: Mapping[str, Form], expected: str
) -> dict[str, np.ndarray]:
    """Reads arrays of an `.npz` archive; others in it are left alone.

    Args:
      content: The archive.
      forms: What each array is like, by its name.
      expected: Beginning of messages, such as `FILE: expected a lexicon`.

    Raises:
      DataError: If it is no such archive, or an array is missing, of another form, or has numbers
        that are not finite.
    """
    found = unpacked_arrays(content, expected, forms)
    for name, form in forms.items():
        if problem := _problem(found.get(name), form):
            raise DataError(f"{expected}, found {problem} as {name!r}")
    return found


def unpacked_arrays(
    content: bytes,
    expected: str,
    names: Collection[str] | None = None,
    error: type[UserError] = DataError,
) -> dict[str, np.ndarray]:
    """Reads the arrays of an `.npz` archive, whatever they are like.

    Args:
      content: The archive.
      expected: Beginning of messages, such as `FILE: expected a lexicon`.
      names: Which ones are read, of those that it has; None for all.
      error: The class of errors.

    Raises:
      UserError: Of the given class, if it is no such archive.
    """
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            wanted = archive.files if names is None else names
            return {name: archive[name] for name in wanted if name in archive}
    except Exception as damage:  # archives have a dozen ways to be damaged, with one class each
        reason = " ".join(str(damage).split())[:120]
        raise error(f"{expected}, found no archive of NumPy's ({reason})") from None


def _problem(array: np.ndarray | None, form: Form) -> str | None:
    """Returns what is wrong with an array; None if nothing is."""
    if array is None:
        return "nothing"
    if array.dtype.kind not in form.kinds:
        return f"{array.dtype} in place of {_NAMES[form.kinds[0]]}"
    if array.ndim != form.axes:
        return f"{array.ndim} axes in place of {form.axes}"
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        return "numbers that are not finite"
    return None
