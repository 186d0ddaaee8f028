"""The look that all figures share, and how they reach a file."""

import functools
import os
import unicodedata
import warnings
from collections.abc import Sequence
from pathlib import Path

from matplotlib import font_manager, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

INK = "#262626"
OUTLINE = "#8C8C8C"
# Okabe and Ito's colours, which colour-blind readers can tell apart; yellow is left out.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DOTS_PER_INCH = 150
MOST_PIXELS = 4000  # of a side; a larger figure is drawn with fewer dots per inch

_FONTS = (
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


def new_figure(width: float, height: float) -> Figure:
    """Returns an empty white figure of this size in inches."""
    figure = Figure(figsize=(width, height), dpi=DOTS_PER_INCH, facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | os.PathLike) -> None:
    """Writes a figure, making its directory if need be.

    Characters that no installed font has are drawn as boxes, not reported.

    Args:
      figure: The figure.
      path: Of a PNG, of at most `MOST_PIXELS` a side, or of an SVG if it ends in `.svg`; the same
        figure gives the same bytes.
    """
    path = Path(path)
    # An SVG would hold the time of day, and names made from random numbers.
    is_svg = path.suffix == ".svg"
    details = {"format": "svg", "metadata": {"Date": None}} if is_svg else {"format": "png"}
    path.parent.mkdir(parents=True, exist_ok=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"(?s).*Glyph .* missing from font")
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support")
        dots = min(DOTS_PER_INCH, MOST_PIXELS / max(figure.get_size_inches()))
        with rc_context({"svg.hashsalt": "attention_jax"}):
            figure.savefig(path, dpi=dots, facecolor="white", **details)


@functools.cache
def fonts() -> list[str]:
    """Lists the installed fonts to look for a character in, in this order."""
    installed = {entry.name for entry in font_manager.fontManager.ttflist}
    return [name for name in _FONTS if name in installed] or ["sans-serif"]


def text_style(size: float, **more) -> dict:
    """Returns the properties of a text that shows its characters as they are.

    Without `parse_math=False` a token such as `$` would start a formula.
    """
    return {"fontsize": size, "fontfamily": fonts(), "color": INK, "parse_math": False, **more}


def printable(token: str) -> str:
    """Returns a token without what would break a label: control characters and new lines."""
    shown = "".join(" " if unicodedata.category(char)[0] == "C" else char for char in token)
    return shown.strip() or "␣"


def text_width(texts: Sequence[str], size: float) -> float:
    """Estimates the width in inches of the widest text, wide characters counting twice."""

    def units(text):
        return sum(1.0 if unicodedata.east_asian_width(char) in "WF" else 0.62 for char in text)

    return max((units(text) for text in texts), default=0.0) * size / 72


def tidy(axes: Axes, *, grid: bool = True) -> None:
    """Takes the box off a plot of curves and makes its ticks and grid recede."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(OUTLINE)
    axes.tick_params(colors=INK, labelsize=8, length=3, color=OUTLINE)
    if grid:
        axes.grid(axis="y", color="#E6E6E6", linewidth=0.6)
        axes.set_axisbelow(True)
