"""Space of a search: which values of which fields may be tried, as a command line gives it."""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence

from attention_jax.errors import UserError, quoted

_PATH = r"(?:config\.)?([A-Za-z_][\w.]*)"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


@dataclasses.dataclass(frozen=True)
class Range:
    """Numbers from one to another, both included.

    Attributes:
      low: The least.
      high: The greatest.
      is_log: Whether their logarithms are drawn evenly, and not they themselves.
      is_whole: Whether they are whole.
    """

    low: float
    high: float
    is_log: bool = False
    is_whole: bool = False

    @property
    def ends(self) -> tuple[str, str]:
        """Both ends, as they stand on a command line."""
        low, high = (round(end) if self.is_whole else end for end in (self.low, self.high))
        return str(low), str(high)


@dataclasses.dataclass(frozen=True)
class Names:
    """Some values, as they stand on a command line, that are in no order."""

    values: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, ...]:
        """All of them."""
        return self.values


Space = Mapping[str, Range | Names]


def read_space(texts: Sequence[str]) -> Space:
    """Reads `FIELD=LOW..HIGH`, with `:log` behind it for rates, or `FIELD=A|B|C`.

    Numbers are whole where both ends are.

    Raises:
      UserError: If one is something else, or of a field that another is of.
    """
    found: dict[str, Range | Names] = {}
    for text in texts:
        match = re.fullmatch(rf"{_PATH}=(.+)", text.strip(), re.DOTALL)
        values = _values(match[2]) if match else None
        if not match or values is None:
            raise UserError(
                f"--search: expected FIELD=LOW..HIGH, FIELD=LOW..HIGH:log or FIELD=A|B, found "
                f"{quoted(text)}"
            )
        if match[1] in found:
            raise UserError(f"--search: expected every field once, found {match[1]} twice")
        found[match[1]] = values
    return found


def _values(text: str) -> Range | Names | None:
    match = re.fullmatch(rf"({_NUMBER})\.\.({_NUMBER})(:log)?", text)
    if match is None:
        names = tuple(part.strip() for part in text.split("|"))
        is_set = len(names) > 1 and all(names) and len(set(names)) == len(names)
        return Names(names) if is_set else None
    low, high = float(match[1]), float(match[2])
    is_log = match[3] is not None
    is_whole = all(re.fullmatch(r"[+-]?\d+", end) for end in match.groups()[:2])
    if not (math.isfinite(high) and low < high) or (is_log and low <= 0):
        return None
    return Range(low, high, is_log, is_whole)
