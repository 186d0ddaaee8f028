"""Learning curves: losses, metrics and learning rate over the steps that a run has logged."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    EngFormatter,
    LogLocator,
    MaxNLocator,
    NullLocator,
    StrMethodFormatter,
)

from attention_jax.data.task import Metric
from attention_jax.json_files import METRICS_LINE, read_json_lines
from attention_jax.plotting.figure import COLOURS, new_figure, printable, text_style, tidy

# Every training logs these. The objectives beside the NLL and the task's own metrics of outputs are
# drawn between losses and rate.
_LOSSES = (
    Metric("loss", "loss", "loss", "min"),
    Metric("nll", "nll", "loss", "min"),
    Metric("perplexity", "perplexity", "perplexity", "min"),
)
_RATE = Metric("learning_rate", "learning_rate", "learning rate", "min")
_OBJECTIVE = "loss/"  # begins the name of what an objective adds to the loss, unweighted
_LOGARITHMIC = "perplexity"  # the panel whose values fall by orders of magnitude
DIGITS = {"loss": 3, "nll": 3}
_WIDTH, _PANEL = 7.0, 1.75  # inches; the second is the height of a panel

Curve = tuple[np.ndarray, np.ndarray]


def read_metrics(path: str | os.PathLike) -> list[dict[str, Any]]:
    """Metrics log: reads a file of one JSON object a line, skipping lines that were cut short.

    Raises:
      DataError: If a line is something else.
    """
    return [record for _, record in read_json_lines(path, METRICS_LINE)]


def curves_by_metric(
    records: Iterable[Mapping[str, Any]],
) -> dict[str, dict[str, Curve]]:
    """Learning curves: collects the values of each metric by split.

    Records are mappings with `step`, `split` and numbers by name. Where a resumed run logged a step
    again, the later record counts.

    Returns:
      {metric: {split: (steps, values)}}, steps ascending.
    """
    points: dict[str, dict[str, dict[int, float]]] = {}
    for record in records:
        step, split = record.get("step"), record.get("split")
        if not isinstance(step, int) or not isinstance(split, str):
            continue
        for name, value in record.items():
            # A bool is an int in Python, but no point of a curve.
            if name != "step" and isinstance(value, int | float) and not isinstance(value, bool):
                points.setdefault(name, {}).setdefault(split, {})[step] = float(value)
    return {
        name: {split: _curve(values) for split, values in by_split.items()}
        for name, by_split in points.items()
    }


def learning_curves(
    records: Iterable[Mapping[str, Any]], title: str = "", metrics: Sequence[Metric] = ()
) -> Figure:
    """Learning curves: draws losses, every objective, metrics and learning rate over the steps.

    Every curve goes through the points that were logged, those of training in a thin line. On every
    other one the best value is marked and written out. `nll` is left out where it is the loss
    itself; perplexities are on a logarithmic axis.

    Args:
      records: As `read_metrics` returns them.
      title: Title of the figure.
      metrics: The task's metrics of outputs, such as BLEU.
    """
    curves = _without_repetition(curves_by_metric(records))
    objectives = [_objective(name) for name in sorted(curves) if name.startswith(_OBJECTIVE)]
    drawn = (*_LOSSES, *objectives, *metrics, _RATE)
    logged = [metric for metric in drawn if metric.name in curves]
    labels = dict.fromkeys(metric.panel for metric in logged)  # a set that keeps its order
    panels = [(label, [each for each in logged if each.panel == label]) for label in labels]
    height = _PANEL * max(len(panels), 1) + 0.6
    figure = new_figure(_WIDTH, height)
    figure.set_layout_engine("constrained", h_pad=0.06, w_pad=0.06)
    rows = figure.subplots(max(len(panels), 1), 1, sharex=True, squeeze=False)[:, 0]
    # Without panels there is still one row, which then says so.
    for axes, (label, shown) in zip(rows, panels, strict=False):
        _draw_panel(axes, shown, curves)
        axes.set_ylabel(label, **text_style(8.5))
        tidy(axes)
    if not panels:
        tidy(rows[0])
        rows[0].text(0.5, 0.5, "nothing was logged", ha="center", transform=rows[0].transAxes)
    rows[-1].set_xlabel("step", **text_style(8.5))
    rows[-1].xaxis.set_major_formatter(EngFormatter(sep=""))
    rows[-1].xaxis.set_major_locator(MaxNLocator(8, integer=True))
    figure.align_ylabels(rows)
    if title:
        figure.suptitle(printable(title), x=0.02, ha="left", **text_style(11, fontweight="bold"))
    return figure


def _without_repetition(curves: Mapping[str, dict[str, Curve]]) -> dict[str, dict[str, Curve]]:
    """Leaves out the only objective, which is the loss, and the NLL as an objective of several."""
    loss = curves.get("loss", {})

    def repeats(name: str, by_split: Mapping[str, Curve]) -> bool:
        if name == f"{_OBJECTIVE}nll":  # `nll`, but for label smoothing
            return True
        may = name == "nll" or name.startswith(_OBJECTIVE)
        return may and all(
            split in loss and _same(loss[split], by_split[split]) for split in by_split
        )

    return {name: by_split for name, by_split in curves.items() if not repeats(name, by_split)}


def _objective(name: str) -> Metric:
    label = name.removeprefix(_OBJECTIVE).replace("_", " ")
    return Metric(name, label, label, "min")


def _same(one: Curve, other: Curve) -> bool:
    # The two are summed in different orders, so their last digits may differ.
    return np.array_equal(one[0], other[0]) and np.allclose(one[1], other[1], equal_nan=True)


def _draw_panel(
    axes: Axes, metrics: Sequence[Metric], curves: Mapping[str, Mapping[str, Curve]]
) -> None:
    """Draws the metrics that share a panel, every split of each in a colour of its own."""
    drawn = [
        (metric, split)
        for metric in metrics
        for split in sorted(curves[metric.name], key=_order)
    ]
    several = len(metrics) > 1
    for colour, (metric, split) in zip(_cycle(COLOURS), drawn, strict=False):
        steps, values = curves[metric.name][split]
        label = f"{split} {metric.label}" if several else split
        if metric is _RATE:
            axes.plot(steps, values, color=colour, linewidth=1.4)
            axes.set_ylim(bottom=0)
        elif split == "train":
            axes.plot(steps, values, color=colour, linewidth=0.7, alpha=0.8, label=label)
        else:
            marker = "o" if len(steps) <= 40 else ""  # more of them would run into each other
            axes.plot(steps, values, color=colour, linewidth=1.4, marker=marker, markersize=2.5,
                      label=label + _mark_best(axes, metric, steps, values, colour))  # fmt: skip
    if metrics[0] is not _RATE:
        values = np.concatenate([curves[metric.name][split][1] for metric, split in drawn])
        values = values[np.isfinite(values)]
        set_axis = _logarithmic if metrics[0].panel == _LOGARITHMIC else _limit
        set_axis(axes, values)
        axes.legend(loc="best", frameon=False, fontsize=7.5, handlelength=1.4)


def _mark_best(
    axes: Axes, metric: Metric, steps: np.ndarray, values: np.ndarray, colour: str
) -> str:
    """Marks the best value of a curve and returns the end of its label, with that value."""
    finite = np.isfinite(values)
    if not finite.any():  # a diverged run may log nothing but nan
        return ""
    steps, values = steps[finite], values[finite]
    best = values.argmin() if metric.better == "min" else values.argmax()
    axes.plot(steps[best], values[best], "o", color=colour, markersize=5, markeredgecolor="white")
    return f", best {values[best]:.{DIGITS.get(metric.name, 1)}f}"


def _logarithmic(axes: Axes, values: np.ndarray) -> None:
    """Logarithmic axis: numbers as they are, be there many orders of magnitude or less than one."""
    axes.set_yscale("log")
    is_wide = len(values) > 0 and values.max() > 10 * values.min() > 0
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)) if is_wide else MaxNLocator(4))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def _limit(axes: Axes, values: np.ndarray) -> None:
    """Sets a panel's limits, cutting off outliers above such as the loss of the first steps."""
    if len(values) < 2 or values.min() == values.max():
        return
    # The top is at most twice as far from the minimum as the 95th percentile is.
    low, usual, high = np.percentile(values, [0, 95, 100])
    if len(values) >= 20 and usual > low:
        high = min(high, low + 2 * (usual - low))
    margin = 0.06 * (high - low)
    axes.set_ylim(low - margin, high + margin)


def _curve(values: Mapping[int, float]) -> Curve:
    steps = sorted(values)
    return np.array(steps), np.array([values[step] for step in steps])


def _order(split: str) -> tuple[bool, str]:
    """Sorts training before all other splits."""
    return split != "train", split


def _cycle(colours: Sequence[str]) -> Iterable[str]:
    while True:
        yield from colours
