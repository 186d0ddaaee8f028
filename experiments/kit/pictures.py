"""Pictures of pages: how they are written, and how a page shows them."""

from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from attention_jax.plotting.figure import save_figure
from attention_jax.runs.files import replacing

COLOURS = 64  # of a picture: few enough that a repository can hold many


def save(figure: Figure, path: Path) -> None:
    """Draws a figure into a file, which is never half-written."""
    with replacing(path) as temporary:
        save_figure(figure, temporary, COLOURS)


def shown(paths: Sequence[Path], out: Path) -> str:
    """Returns how a page in `out` shows pictures, in Markdown."""
    return "\n\n".join(f"![{path.stem}]({path.relative_to(out)})" for path in paths)
