"""Markdown for tables of runs: numbers with their uncertainty, and how the runs were made."""

import math
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.grid import Run
from experiments.seeds import Difference, SeedMean

NOTHING = "–"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table whose first column is text and whose other columns are numbers."""
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))


def with_deviation(values: SeedMean) -> str:
    """Writes a mean and its standard deviation over seeds."""
    if math.isnan(values.deviation):
        return f"{values.mean:.2f}"
    return f"{values.mean:.2f} ± {values.deviation:.2f}"


def spread(values: Sequence[float | None]) -> str:
    """Writes the mean and standard deviation of those values that are known."""
    known = [value for value in values if value is not None]
    if not known:
        return NOTHING
    deviation = f" ± {np.std(known, ddof=1):.2f}" if len(known) > 1 else ""
    partial = f" ({len(known)} of {len(values)})" if len(known) < len(values) else ""
    return f"{np.mean(known):.2f}{deviation}{partial}"


def interval(values: SeedMean | Difference) -> str:
    """Writes a 95 % interval."""
    return f"{values.low:.2f} to {values.high:.2f}"


def probability(p: float, resamples: int) -> str:
    """Writes a p-value, or the bound that so many resamples can show."""
    least = 1 / (1 + resamples)
    return f"< {2 * least:.3f}" if p <= least else f"{p:.3f}"


def reading(folder: Path) -> list[str]:
    """Returns the section of what somebody made of the numbers, `reading.md`, where there is it."""
    path = folder / "reading.md"
    if not path.exists():
        return []
    return ["## Reading", "", path.read_text(encoding="utf-8").strip(), ""]


def provenance(runs: Sequence[Run]) -> str:
    """Returns how runs were made, as a list and commands: what they share once, else variants."""
    facts = [run.facts() for run in runs]
    versions = [each.get("versions", {}) for each in facts]
    lines = {
        "cells": dict.fromkeys(run.cell for run in runs),
        "seeds": dict.fromkeys(str(run.seed) for run in runs),
        "hardware": (_hardware(each.get("hardware", {})) for each in facts),
        "commit": (each.get("commit") or "none" for each in facts),
        "data (SHA-256 of all text)": (str(each.get("data")) for each in facts),
        "versions": (", ".join(f"{name} {text}" for name, text in v.items()) for v in versions),
        "metric": (_signature(each) for each in facts),
        "finished": [_span([each.get("finished") or "" for each in facts])],
    }
    shown = [f"- {name}: {'; '.join(dict.fromkeys(texts))}" for name, texts in lines.items()]
    commands = (shlex.join(["python", *arguments]) for arguments in runs[0].arguments())
    return "\n".join([*shown, "", f"Commands of {runs[0].name}:", "", "```", *commands, "```"])


def _hardware(facts: Mapping[str, Any]) -> str:
    devices = facts.get("devices", [])
    names = ", ".join(f"{devices.count(name)} x {name}" for name in dict.fromkeys(devices))
    return f"{names} ({facts.get('cpus')} CPU cores, {facts.get('machine')})"


def _signature(facts: Mapping[str, Any]) -> str:
    return facts.get("evaluations", {}).get("test", {}).get("bleu_signature", "")


def _span(times: Sequence[str]) -> str:
    first, last = min(times), max(times)
    return first if first == last else f"{first} to {last}"
