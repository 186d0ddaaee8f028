"""Markdown for tables of runs: numbers with their uncertainty, and how the runs were made."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.grid import Run
from experiments.sentence_bleu import Comparison, SeedMean

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


def interval(values: SeedMean | Comparison) -> str:
    """Writes a 95 % interval."""
    return f"{values.low:.2f} to {values.high:.2f}"


def probability(p: float, resamples: int) -> str:
    """Writes a p-value, or the bound that so many resamples can show."""
    least = 1 / (1 + resamples)
    return f"< {2 * least:.3f}" if p <= least else f"{p:.3f}"


def provenance(runs: Sequence[Run]) -> str:
    """Returns a list of how runs were made: what they share once, else every variant."""
    facts = [run.facts() for run in runs]
    hardware = [_hardware(each.get("hardware", {})) for each in facts]
    versions = [each.get("versions", {}) for each in facts]
    lines = {
        "runs": [", ".join(run.name for run in runs)],
        "hardware": hardware,
        "commit": [each.get("commit") or "none" for each in facts],
        "data (SHA-256 of all text)": [str(each.get("data")) for each in facts],
        "versions": [", ".join(f"{name} {text}" for name, text in v.items()) for v in versions],
        "metric": [_signature(each) for each in facts],
        "finished": [_span([each.get("finished") or "" for each in facts])],
    }
    shown = [f"- {name}: {'; '.join(dict.fromkeys(texts))}" for name, texts in lines.items()]
    commands = "\n".join(f"    python {' '.join(words)}" for words in runs[0].arguments())
    return "\n".join([*shown, f"- commands of the first of them:\n\n{commands}"])


def _hardware(facts: Mapping[str, Any]) -> str:
    devices = facts.get("devices", [])
    names = ", ".join(f"{devices.count(name)} x {name}" for name in dict.fromkeys(devices))
    return f"{names} ({facts.get('cpus')} CPU cores, {facts.get('machine')})"


def _signature(facts: Mapping[str, Any]) -> str:
    return facts.get("evaluations", {}).get("test", {}).get("bleu_signature", "")


def _span(times: Sequence[str]) -> str:
    first, last = min(times), max(times)
    return first if first == last else f"{first} to {last}"
