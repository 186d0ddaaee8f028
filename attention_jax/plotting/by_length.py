"""BLEU by source length: curves of several systems with their confidence bands."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from attention_jax.evaluation.by_length import LengthBucket
from attention_jax.plotting.figure import COLOURS, new_figure, printable, text_style, tidy

MARKERS = "osD^vPX"


def bleu_by_length_curves(systems: Mapping[str, Sequence[LengthBucket]], title: str = "") -> Figure:
    """BLEU by source length: draws a curve for each system, with 95 % intervals as bands.

    Args:
      systems: The buckets of each system by its name. A system that lacks a bucket has a gap in
        its curve. The axis gives the number of sentences below each range of lengths.
      title: Title of the figure.

    Raises:
      ValueError: If there are no buckets.
    """
    if not any(systems.values()):
        raise ValueError("expected at least one system with a bucket, found none")
    ranges = {
        (bucket.first, bucket.label): bucket.sentences
        for buckets in systems.values()
        for bucket in buckets
    }
    ranges = dict(sorted(ranges.items()))  # by `first`, for as text `>60` sorts before `1-10`
    figure = new_figure(max(5.0, 1.6 + 0.75 * len(ranges)), 3.6)
    figure.set_layout_engine("constrained", h_pad=0.08, w_pad=0.08)
    axes = figure.subplots()
    for index, (name, buckets) in enumerate(systems.items()):
        colour, marker = COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)]
        found = {(bucket.first, bucket.label): bucket for bucket in buckets}
        # lengths, (BLEU, low, high); Matplotlib breaks a line at nan
        table = np.array(
            [
                [found[at].bleu, found[at].low, found[at].high] if at in found else [np.nan] * 3
                for at in ranges
            ]
        )
        x = np.arange(len(ranges))
        axes.fill_between(x, table[:, 1], table[:, 2], color=colour, alpha=0.15, linewidth=0)
        axes.plot(x, table[:, 0], color=colour, marker=marker, markersize=4.5, linewidth=1.6,
                  markeredgecolor="white", markeredgewidth=0.6, label=name)  # fmt: skip
    labels = [f"{label}\n{sentences:,}" for (_, label), sentences in ranges.items()]
    tidy(axes)
    axes.set_xticks(np.arange(len(ranges)), labels, **text_style(8))
    axes.set_xlim(-0.3, len(ranges) - 0.7)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("words in the source; below, number of sentences", **text_style(8.5))
    axes.set_ylabel("BLEU", **text_style(8.5))
    legend = axes.legend(frameon=False, fontsize=8, loc="best")
    for text in legend.get_texts():
        text.set(**text_style(8))
    if title:
        axes.set_title(printable(title), loc="left", **text_style(11, fontweight="bold"))
    return figure
