"""NumPy archives, whoever wrote them: read, and checked for the arrays that they must have."""

import io
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from attention_jax.errors import DataError

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
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            found = {name: archive[name] for name in forms if name in archive}
    except Exception as error:  # archives have a dozen ways to be damaged, with an exception each
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{expected}, found no archive of NumPy's ({reason})") from None
    for name, form in forms.items():
        if problem := _problem(found.get(name), form):
            raise DataError(f"{expected}, found {problem} as {name!r}")
    return found


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
