"""Markdown for reports on runs: tables, numbers with their uncertainty, provenance."""

import math
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attention_jax.evaluation import seeds
from attention_jax.evaluation.seeds import Difference, SeedMean
from attention_jax.runs.provenance import OWN_FILES
from attention_jax.sweeps.grid import GridRun

NOTHING = "–"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Makes a Markdown table; the first column is aligned left, all others right."""
    # Markdown's rule below the headings; a colon at the right end aligns a column right.
    rule = ["---", *["---:"] * (len(headings) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, rule, *rows))


def with_deviation(values: SeedMean) -> str:
    """Formats a mean and its standard deviation over seeds."""
    if math.isnan(values.deviation):
        return f"{values.mean:.2f}"
    return f"{values.mean:.2f} ± {values.deviation:.2f}"


def spread(values: Sequence[float | None], digits: int = 2) -> str:
    """Formats the mean and standard deviation of the known values."""
    known = [value for value in values if value is not None]
    if not known:
        return NOTHING
    deviation = f" ± {np.std(known, ddof=1):.{digits}f}" if len(known) > 1 else ""
    partial = f" ({len(known)} of {len(values)})" if len(known) < len(values) else ""
    return f"{np.mean(known):.{digits}f}{deviation}{partial}"


def interval(values: SeedMean | Difference) -> str:
    """Formats a 95 % confidence interval."""
    return f"{values.low:.2f} to {values.high:.2f}"


def probability(p: float, resamples: int) -> str:
    """Formats a p-value, or the bound below which so many resamples cannot tell."""
    # No resample was as extreme: p is then 1 / (1 + resamples), and says only that it is small.
    least = 1 / (1 + resamples)
    return f"< {2 * least:.3f}" if p <= least else f"{p:.3f}"


def tested(result: Difference) -> list[str]:
    """Formats a test: the difference, its interval and its p-value."""
    p = probability(result.p_value, seeds.RESAMPLES)
    return [f"{result.difference:+.2f}", interval(result), p]


def provenance(runs: Sequence[GridRun]) -> str:
    """Lists the provenance of runs, each distinct value once, and the commands of the first."""
    facts = [run.facts() for run in runs]
    versions = [each.get("versions", {}) for each in facts]
    lines = {
        "cells": dict.fromkeys(run.cell for run in runs),
        "seeds": dict.fromkeys(str(run.seed) for run in runs),
        "hardware": (_hardware(each.get("hardware", {})) for each in facts),
        "commit": (each.get("commit") or "none" for each in facts),
        "files of one's own (SHA-256)": (_own_files(each) for each in facts),
        "data (SHA-256 of all text)": (str(each.get("data")) for each in facts),
        "versions": (", ".join(f"{name} {text}" for name, text in v.items()) for v in versions),
        "metric": (_signature(each) for each in facts),
        "finished": [_span([each.get("finished") or "" for each in facts])],
    }
    told = {name: "; ".join(dict.fromkeys(filter(None, texts))) for name, texts in lines.items()}
    shown = [f"- {name}: {text}" for name, text in told.items() if text]
    commands = (shlex.join(["python", *arguments]) for arguments in runs[0].arguments())
    return "\n".join([*shown, "", f"Commands of {runs[0].name}:", "", "```sh", *commands, "```"])


def _own_files(facts: Mapping[str, Any]) -> str:
    files = facts.get(OWN_FILES) or {}
    return ", ".join(f"{name} {digest[:10]}" for name, digest in files.items())


def _hardware(facts: Mapping[str, Any]) -> str:
    devices = facts.get("devices", [])
    names = ", ".join(f"{devices.count(name)} x {name}" for name in dict.fromkeys(devices))
    processor = facts.get("processor") or facts.get("machine")
    return f"{names} ({facts.get('cpus')} CPU cores, {processor})"


def _signature(facts: Mapping[str, Any]) -> str:
    return facts.get("evaluations", {}).get("test", {}).get("bleu_signature", "")


def _span(times: Sequence[str]) -> str:
    first, last = min(times), max(times)
    return first if first == last else f"{first} to {last}"
