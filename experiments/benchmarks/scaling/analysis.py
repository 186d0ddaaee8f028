"""Analysis of measured times: growth, partitioning overhead, efficiency, utilisation (MFU)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

# Peak rate of one chip in dense bfloat16 operations per second, as its maker states it.
# NVIDIA's data sheets of H100 and H200 (SXM); Google Cloud's pages of TPU v4, v5e and v5p.
_PEAKS = {
    "NVIDIA H100 80GB HBM3": 989e12,
    "NVIDIA H200": 989e12,
    "TPU v4": 275e12,
    "TPU v5 lite": 197e12,
    "TPU v5p": 459e12,
}


def peak_flops(device: str, given: float = 0.0) -> float | None:
    """Returns the peak rate of a device (1/s), `given` where it is not 0, or None if unknown."""
    return given or _PEAKS.get(device)


def utilisation(flops: float, seconds: float, devices: int, peak: float) -> float:
    """Model-FLOP utilisation: the share of the peak that the model uses, flops / (s n peak)."""
    return flops / (seconds * devices * peak)


def growth(xs: Sequence[float], ys: Sequence[float]) -> tuple[float, float]:
    """Least-squares fit of a line; returns (slope, intercept)."""
    slope, intercept = np.polyfit(np.asarray(xs, float), np.asarray(ys, float), 1)
    return float(slope), float(intercept)


def partitioning_overhead(seconds: Mapping[int, float], *, grows: bool) -> dict[int, float]:
    """Partitioning overhead: what dividing a computation among simulated devices costs.

      overhead(n) = t(n) / (w(n) t(1)) - 1,  w(n) = n where the batch grows with n, else 1

    Simulated devices share the same cores, so at best n devices need as long as one for the same
    work, and n times as long for n times the work.

    Args:
      seconds: Time of a step by number of devices, 1 among them.
      grows: Whether the batch grows with the number of devices.
    """
    return {
        count: value / ((count if grows else 1) * seconds[1]) - 1
        for count, value in seconds.items()
    }


def efficiency(seconds: Mapping[int, float], *, grows: bool) -> dict[int, float]:
    """Parallel efficiency: how much of their speed devices keep when they work together.

      efficiency(n) = t(1) / t(n) where the batch grows with n (weak scaling), else t(1) / (n t(n))
    """
    return {
        count: seconds[1] / (value * (1 if grows else count)) for count, value in seconds.items()
    }


def seconds_by_line(result: Mapping[str, Any]) -> dict[str, dict[int, float]]:
    """Returns the least time of a step (s) by x, for each curve of a series.

    The least of the rounds is the one that others on the machine disturbed least.
    """
    lines: dict[str, dict[int, float]] = {}
    for point in result["points"]:
        lines.setdefault(point["line"], {})[point["x"]] = point["milliseconds"]["min"] / 1e3
    return lines


def growth_by_line(result: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Returns (ms a unit of x, ms at 0) for each curve of at least two points."""
    return {
        line: growth(list(values), [1e3 * value for value in values.values()])
        for line, values in seconds_by_line(result).items()
        if len(values) > 1
    }
