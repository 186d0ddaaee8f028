"""Figures: the style that all of them share, and how they are written to a file."""

import os
import re
import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from PIL import Image

from attention_jax.paths import expanded
from attention_jax.plotting.fonts import fonts, say_missing, use_other_fonts

INK = "#262626"
OUTLINE = "#8C8C8C"
# Okabe and Ito's colours, which colour-blind readers can tell apart; yellow is left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
# In every picture and page: attention, and what is right, such as gold links, rectangles and times.
ATTENTION, TRUTH = COLOURS[0], COLOURS[1]
ATTENTION_ON_DARK, TRUTH_ON_DARK = COLOURS[4], "#F08A24"
# Linear, so that a cell is ATTENTION with the opacity of its weight.
ATTENTION_MAP = LinearSegmentedColormap.from_list("attention", ["white", ATTENTION])
DOTS_PER_INCH = 150
# By default these hold the date, and an SVG identifiers made from random numbers (see `_draw`).
_DETAILS = {
    ".svg": {"format": "svg", "metadata": {"Date": None}},
    ".pdf": {"format": "pdf", "metadata": {"CreationDate": None}},
}
_STYLE = {"svg.hashsalt": "attention_jax", "pdf.fonttype": 42}  # text of a PDF remains text
MOST_PIXELS = 4000  # of a side; a larger figure is drawn with fewer dots per inch

# Matplotlib reports a character that no font has by a warning, and in no other way.
_MISSING = re.compile(r"Glyph (\d+) .*missing from", re.DOTALL)
# Invisible characters: Unicode's Default_Ignorable_Code_Point, and others that are drawn blank.
# viewer_page/model.js has the same list.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]+"
)


def new_figure(width: float, height: float) -> Figure:
    """Creates an empty white figure of the given size in inches."""
    # Without pyplot, which keeps every figure alive and wants to choose a window system.
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike, colours: int = 0) -> None:
    """Writes a figure as PNG, SVG or PDF, making its directory if need be.

    If the figure's fonts lack a character, all installed fonts are searched for it. Characters that
    no installed font has are drawn as boxes, and a notice says which font would help.

    Args:
      figure: The figure; the same figure gives the same bytes.
      path: An SVG if it ends in `.svg`, a PDF if in `.pdf`, else a PNG of at most `MOST_PIXELS` a
        side.
      colours: How many colours a PNG has, from which the figure's differ little; 0 keeps them all.
        A few dozen make a plot of curves four times smaller.
    """
    path = expanded(path)
    details = _DETAILS.get(path.suffix, {"format": "png"})
    path.parent.mkdir(parents=True, exist_ok=True)
    missing = _draw(figure, path, details)
    if missing and use_other_fonts(figure, missing):
        missing = _draw(figure, path, details)
    say_missing(missing)
    if colours and path.suffix not in _DETAILS:
        _reduce_colours(path, colours)


def _reduce_colours(path: Path, colours: int) -> None:
    with Image.open(path) as drawn:
        reduced = drawn.convert("RGB").quantize(
            colours, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
        )
        dots = drawn.info.get("dpi")
    reduced.save(path, "PNG", optimize=True, dpi=dots)


def _draw(figure: Figure, path: Path, details: dict) -> set[str]:
    """Writes a figure and returns the characters that its fonts lack."""
    dots = min(DOTS_PER_INCH, MOST_PIXELS / max(figure.get_size_inches()))
    with (
        warnings.catch_warnings(record=True) as caught,
        rc_context(_STYLE),
    ):
        warnings.simplefilter("always")  # else a second figure would not warn again
        figure.savefig(path, dpi=dots, facecolor="white", **details)
    missing = set()
    for warning in caught:
        if glyph := _MISSING.match(str(warning.message)):
            missing.add(chr(int(glyph[1])))
        elif "Matplotlib currently does not support" not in str(warning.message):
            # Not one about fonts or scripts: it goes on to whoever called.
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
    return missing


def text_style(size: float, **more) -> dict:
    """Returns Matplotlib properties of a text whose characters are shown as they are.

    Without `parse_math=False` a token such as `$` would start a formula.
    """
    return {"fontsize": size, "fontfamily": fonts(), "color": INK, "parse_math": False, **more}


def printable(token: str) -> str:
    """Returns a token as a label can show it, with spaces for control characters and line ends.

    A token of invisible characters becomes a list of code points, such as `U+200B`, and a blank one
    the sign for a space.
    """
    bare = "".join(char for char in token if not char.isspace())
    if _UNSEEN.fullmatch(bare):
        return " ".join(f"U+{ord(char):04X}" for char in bare)
    shown = "".join(" " if unicodedata.category(char)[0] == "C" else char for char in token)
    return shown.strip() or "␣"


def text_width(texts: Sequence[str], size: float) -> float:
    """Estimates the width in inches of the widest text at a font size in points."""

    def units(text):  # in em: East Asian wide characters take one, others about 0.62
        return sum(1.0 if unicodedata.east_asian_width(char) in "WF" else 0.62 for char in text)

    return max((units(text) for text in texts), default=0.0) * size / 72


def legend_columns(figure: Figure, labels: Iterable[str], size: float = 8) -> int:
    """Returns how many labels stand beside one another in a legend as wide as its figure."""
    labels = list(labels)
    mark = 4 * size / 72  # inches that a line's mark takes, with the space around it
    widest = text_width(labels, size) + mark
    return max(1, min(len(labels), int(figure.get_figwidth() / widest)))


def tidy(axes: Axes, *, grid: bool = True) -> None:
    """Declutters a plot of curves: no box, and ticks and grid in grey."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(OUTLINE)
    axes.tick_params(colors=INK, labelsize=8, length=3, color=OUTLINE)
    if grid:
        axes.grid(axis="y", color="#E6E6E6", linewidth=0.6)
        axes.set_axisbelow(True)
