"""Learning curves: losses, metrics and learning rate over the steps that a run has logged."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator

from attention_jax.data.task import Metric
from attention_jax.json_files import METRICS_LINE, read_json_lines
from attention_jax.plotting.figure import COLOURS, new_figure, text_style, tidy

# Every training logs these. The task's own metrics of outputs are drawn between losses and rate.
_LOSSES = (
    Metric("loss", "loss", "loss", "min"),
    Metric("nll", "nll", "loss", "min"),
    Metric("perplexity", "perplexity", "perplexity", "min"),
)
_RATE = Metric("learning_rate", "learning_rate", "learning rate", "min")
DIGITS = {"loss": 3, "nll": 3}
SMOOTHING = 0.01  # standard deviation of the kernel, as a share of a curve's points
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
    """Learning curves: draws losses, validation metrics and learning rate over the steps.

    The training loss is drawn twice, faintly as logged and boldly smoothed. On every other curve
    the best value is marked and written out. `nll` is left out where it is the loss itself.

    Args:
      records: As `read_metrics` returns them.
      title: Title of the figure.
      metrics: The task's metrics of outputs, such as BLEU.
    """
    curves = _without_repetition(curves_by_metric(records))
    logged = [metric for metric in (*_LOSSES, *metrics, _RATE) if metric.name in curves]
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
        figure.suptitle(title, x=0.02, ha="left", **text_style(11, fontweight="bold"))
    return figure


def _without_repetition(curves: Mapping[str, dict[str, Curve]]) -> dict[str, dict[str, Curve]]:
    """Leaves out `nll` where it is the only objective and therefore equals `loss`."""
    loss, nll = curves.get("loss", {}), curves.get("nll", {})
    repeats = all(split in loss and _same(loss[split], nll[split]) for split in nll)
    return {name: by_split for name, by_split in curves.items() if name != "nll" or not repeats}


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
            # Without a label, so the legend has the smoothed curve only.
            axes.plot(steps, values, color=colour, linewidth=0.6, alpha=0.25)
            axes.plot(steps, _smooth(values), color=colour, linewidth=1.4, label=label)
        else:
            marker = "o" if len(steps) <= 40 else ""  # more of them would run into each other
            axes.plot(steps, values, color=colour, linewidth=1.4, marker=marker, markersize=2.5,
                      label=label + _mark_best(axes, metric, steps, values, colour))  # fmt: skip
    if metrics[0] is not _RATE:
        _limit(axes, [curves[metric.name][split][1] for metric, split in drawn])
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


def _limit(axes: Axes, values: Sequence[np.ndarray]) -> None:
    """Sets a panel's limits, cutting off outliers above such as the loss of the first steps."""
    together = np.concatenate(values)
    together = together[np.isfinite(together)]
    if len(together) < 2 or together.min() == together.max():
        return
    # The top is at most twice as far from the minimum as the 95th percentile is.
    low, usual, high = np.percentile(together, [0, 95, 100])
    if len(together) >= 20 and usual > low:
        high = min(high, low + 2 * (usual - low))
    margin = 0.06 * (high - low)
    axes.set_ylim(low - margin, high + margin)


def _curve(values: Mapping[int, float]) -> Curve:
    steps = sorted(values)
    return np.array(steps), np.array([values[step] for step in steps])


def _smooth(values: np.ndarray) -> np.ndarray:
    """Gaussian smoothing: averages each value with its neighbours, skipping those not finite."""
    width = max(1.0, SMOOTHING * len(values))
    # Not longer than the curve, or `mode="same"` would return as many values as the kernel has.
    reach = min(int(3 * width), (len(values) - 1) // 2)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / width) ** 2)
    finite = np.isfinite(values)
    # Divided by the kernel's weight on finite values, which also corrects both ends of the curve.
    total = np.convolve(np.where(finite, values, 0.0), kernel, mode="same")
    weight = np.convolve(finite.astype(float), kernel, mode="same")
    return np.divide(total, weight, out=np.full_like(total, np.nan), where=weight > 0)


def _order(split: str) -> tuple[bool, str]:
    """Sorts training before all other splits."""
    return split != "train", split


def _cycle(colours: Sequence[str]) -> Iterable[str]:
    while True:
        yield from colours
