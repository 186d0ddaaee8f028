"""Font fallback: finds installed fonts that have the characters of a figure."""

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
_BOXES = "Last Resort"  # has a box for every character, so it would seem to lack none
# First words of Unicode's names of characters that one East Asian font covers.
_EAST_ASIAN = {"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "FULLWIDTH"}

_said: set[str] = set()


@functools.cache
def fonts() -> list[str]:
    """Font fallback: lists the preferred fonts that are installed, in order of preference."""
    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    return [name for name in _PREFERRED if name in installed] or ["sans-serif"]


def use_other_fonts(figure: Figure, missing: Collection[str]) -> bool:
    """Font fallback: lets a figure use all installed fonts that have a character it misses.

    Matplotlib lists the fonts once and caches the list, so the system is searched again.

    Returns:
      Whether there are any such fonts.
    """
    _look_again()
    found = list(_families_with(missing))
    if found:
        families = list(dict.fromkeys([*fonts(), *found]))
        for text in figure.findobj(Text):
            text.set_fontfamily(families)
    return bool(found)


def say_missing(missing: Collection[str]) -> None:
    """Warns, once for every character, that no installed font has it, and names one that has."""
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
    """Adds fonts that were installed since Matplotlib made its list."""
    known = {entry.fname for entry in font_manager.fontManager.ttflist}
    for path in font_manager.findSystemFonts():
        if path not in known:
            # A file that is no font raises errors of several kinds.
            with contextlib.suppress(Exception):
                font_manager.fontManager.addfont(path)
    fonts.cache_clear()


def _families_with(characters: Collection[str]) -> Iterator[str]:
    """Yields font families, preferred ones first, until no other font has a missing character."""
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
            wanted -= has  # a later font is of use only for what is still missing
            yield entry.name


def _font_for(character: str) -> str:
    """Names a font that should have a character, judging by the script in its Unicode name."""
    script = unicodedata.name(character, "").replace("-", " ").partition(" ")[0]
    if script in _EAST_ASIAN:
        return "Noto Sans CJK"
    if unicodedata.category(character).startswith("S"):
        return "Noto Emoji or Noto Sans Symbols 2"
    return f"Noto Sans {script.title()}" if script else "a font of its script"
