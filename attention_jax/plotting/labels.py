"""Label placement: puts names beside points so that they hide neither each other nor the points."""

import itertools
import math
from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox, BboxBase

from attention_jax.plotting.figure import OUTLINE, text_style

# Lengths in points of print, 1/72 inch.
_SIZE = 7.0
_MARKER = 5.0  # kept free around a point
_DISTANCES = (7.0, 14.0, 22.0, 32.0, 44.0, 58.0)
_ANGLES = 16
_LINE_FROM = 14.0  # nearer names need no line to their points


def place_labels(
    axes: Axes, points: Mapping[str, tuple[float, float]], colours: Mapping[str, str]
) -> None:
    """Label placement: writes each name near its point, with a line to it if it had to go far.

    Greedy: the most crowded points choose first, each the place that hides least, and among equals
    the nearest. Axis limits and everything else that affects the layout must be final.

    Args:
      axes: Where the points are drawn.
      points: Data coordinates by name.
      colours: The colour of each name.
    """
    figure = axes.figure
    figure.draw_without_rendering()  # computes the layout, without which there are no pixels
    scale = figure.dpi / 72
    centres = {name: tuple(axes.transData.transform(point)) for name, point in points.items()}
    taken = [_around(centre, _MARKER * scale) for centre in centres.values()]
    frame = axes.get_window_extent()
    for name in sorted(centres, key=lambda name: _crowd(centres[name], centres.values())):
        text = axes.annotate(
            name, points[name], xytext=(0, 0), textcoords="offset points", ha="center",
            va="center", **{**text_style(_SIZE), "color": colours[name]},
        )  # fmt: skip
        text.set_in_layout(False)  # or the layout would shrink the axes to make room for it
        box = text.get_window_extent()
        offset, placed = min(
            _places(centres[name], box.width, box.height, scale),
            key=lambda place: _cost(*place, taken, frame, scale),
        )
        taken.append(placed)
        text.set_position((offset[0] / scale, offset[1] / scale))
        if _gap(centres[name], placed) > _LINE_FROM * scale:
            line = axes.annotate(
                "", points[name], xytext=_nearest(centres[name], placed),
                textcoords="figure pixels",
                arrowprops={"arrowstyle": "-", "color": OUTLINE, "linewidth": 0.6, "shrinkB": 4},
            )  # fmt: skip
            line.set_in_layout(False)


def _places(centre: tuple[float, float], width: float, height: float, scale: float):
    """Yields candidate places around a point in pixels: (offset of the middle, box)."""
    for distance, step in itertools.product(_DISTANCES, range(_ANGLES)):
        angle = 2 * math.pi * step / _ANGLES
        across, up = math.cos(angle), math.sin(angle)
        offset = (
            across * (distance * scale + width / 2), up * (distance * scale + height / 2),
        )  # fmt: skip
        x, y = centre[0] + offset[0] - width / 2, centre[1] + offset[1] - height / 2
        yield offset, Bbox.from_bounds(x, y, width, height)


def _cost(
    offset: tuple[float, float], box: Bbox, taken: Sequence[Bbox], frame: BboxBase, scale: float
) -> float:
    """Returns the area in pixels that a place would hide or cut off, and a little for distance."""
    hidden = sum(_shared(box, other) for other in taken)
    outside = box.width * box.height - _shared(box, frame)
    return hidden + outside + scale * math.hypot(*offset) / 10


def _shared(box: BboxBase, other: BboxBase) -> float:
    """Returns the area that two boxes share."""
    both = Bbox.intersection(box, other)
    return 0.0 if both is None else both.width * both.height


def _around(centre: tuple[float, float], radius: float) -> Bbox:
    return Bbox.from_extents(
        centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius
    )


def _crowd(centre: tuple[float, float], others) -> float:
    """Returns the distance to the second nearest other point, or to the farthest if fewer."""
    distances = sorted(math.dist(centre, other) for other in others)  # [0] is the point itself
    return distances[min(2, len(distances) - 1)]


def _nearest(point: tuple[float, float], box: Bbox) -> tuple[float, float]:
    """Returns the position in a box that is nearest to a point."""
    return min(max(point[0], box.x0), box.x1), min(max(point[1], box.y0), box.y1)


def _gap(point: tuple[float, float], box: Bbox) -> float:
    return math.dist(point, _nearest(point, box))
