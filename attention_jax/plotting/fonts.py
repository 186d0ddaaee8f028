"""Fonts: which of those that are installed have the characters of a figure."""

import contextlib
import functools
import sys
import unicodedata
from collections.abc import Collection, Iterator

from matplotlib import font_manager
from matplotlib.figure import Figure
from matplotlib.ft2font import FT2Font
from matplotlib.text import Text

_PREFERRED = (
    "DejaVu Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Source Han Sans",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "IPAGothic",
    "Hiragino Sans",
    "PingFang SC",
    "Microsoft YaHei",
    "Arial Unicode MS",
    "Noto Sans Devanagari",
    "Noto Sans Thai",
    "Noto Color Emoji",
)
_BOXES = "Last Resort"  # has a box for every character
_EAST_ASIAN = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH"}

_said: set[str] = set()


@functools.cache
def fonts() -> list[str]:
    """Lists the installed fonts to look for a character in, in this order."""
    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    return [name for name in _PREFERRED if name in installed] or ["sans-serif"]


def use_other_fonts(figure: Figure, missing: Collection[str]) -> bool:
    """Lets a figure use every installed font that has one of the characters it misses.

    Matplotlib remembers which fonts there were when it was first used, so we look again.

    Returns:
      Whether there are any.
    """
    _look_again()
    found = list(_families_with(missing))
    if found:
        families = list(dict.fromkeys([*fonts(), *found]))
        for text in figure.findobj(Text):
            text.set_fontfamily(families)
    return bool(found)


def say_missing(missing: Collection[str]) -> None:
    """Says once for every character that no installed font has it, and which font would."""
    new = sorted(set(missing) - _said)
    if not new:
        return
    _said.update(new)
    others = f" and {len(new) - 1} more" if len(new) > 1 else ""
    wanted = " and ".join(dict.fromkeys(map(_font_for, new)))
    print(
        f"notice: drawn as boxes, for no installed font has them: {new[0]} "
        f"(U+{ord(new[0]):04X}){others}; install {wanted}",
        file=sys.stderr,
    )


def _look_again() -> None:
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in font_manager.findSystemFonts():
        if path not in known:
            with contextlib.suppress(Exception):  # whatever a file is that is no font
                font_manager.fontManager.addfont(path)
    fonts.cache_clear()


def _families_with(characters: Collection[str]) -> Iterator[str]:
    """Yields families, those that we prefer first, until they have all that any has."""
    wanted = {ord(character) for character in characters}
    ranks = {name: rank for rank, name in enumerate(_PREFERRED)}
    regular = [
        entry
        for entry in font_manager.fontManager.ttflist
        if entry.style == "normal" and not entry.name.startswith(_BOXES)
    ]
    for entry in sorted(regular, key=lambda entry: (ranks.get(entry.name, len(ranks)), entry.name)):
        if not wanted:
            return
        try:
            has = wanted & FT2Font(entry.fname).get_charmap().keys()
        except (OSError, RuntimeError):  # no longer there, or damaged
            continue
        if has:
            wanted -= has
            yield entry.name


def _font_for(character: str) -> str:
    """Returns a font that has a character, as far as its name tells."""
    script = unicodedata.name(character, "").replace("-", " ").partition(" ")[0]
    if script in _EAST_ASIAN:
        return "Noto Sans CJK"
    if unicodedata.category(character).startswith("S"):
        return "Noto Emoji or Noto Sans Symbols 2"
    return f"Noto Sans {script.title()}" if script else "a font of its script"
