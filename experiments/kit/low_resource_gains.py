"""Low-resource gains: whether a system gains more over its base with less training data."""

from collections.abc import Mapping, Sequence

from attention_jax.evaluation import seeds
from attention_jax.sweeps import tables
from experiments.kit import measure_tables
from experiments.kit.alignment_variants import BASE
from experiments.kit.sentence_measures import MEASURES

_MEASURES = ("bleu", "aer")


def gains_section(
    found: measure_tables.Found, conditions: Sequence[str], labels: Mapping[str, str]
) -> list[str]:
    """Makes a section that compares the gains of systems in two conditions.

    Args:
      found: The measures of each seed, by `CONDITION_SYSTEM`.
      conditions: The condition with more data, then the one with less.
      labels: Names of the systems.

    Returns:
      Lines of Markdown; none while a condition has no base.
    """
    if any(f"{condition}_{BASE}" not in found for condition in conditions):
        return []
    lines = [f"## Does less text make them matter more? ({' against '.join(conditions)})", ""]
    for measure in _MEASURES:
        rows = _rows(found, conditions, labels, measure)
        if rows:
            label = MEASURES[measure].label
            headings = [f"{label} gained on {labels[BASE]}", *conditions, "difference",
                        "95 % interval", "p"]  # fmt: skip
            lines += [tables.table(headings, rows), ""]
    return lines


def _rows(
    found: measure_tables.Found,
    conditions: Sequence[str],
    labels: Mapping[str, str],
    measure: str,
) -> list[list[str]]:
    rows = []
    for name, label in labels.items():
        # Two pairs (base, system): in the condition with more data, and in that with less.
        cells = [
            tuple(found.get(f"{condition}_{system}", ()) for system in (BASE, name))
            for condition in conditions
        ]
        runs = [run for pair in cells for of_cell in pair for run in of_cell]
        is_whole = all(of_cell for pair in cells for of_cell in pair)
        if name == BASE or not is_whole or any(measure not in run for run in runs):
            continue
        larger, smaller = (
            tuple([run[measure] for run in of_cell] for of_cell in pair) for pair in cells
        )
        result = seeds.compare_gains(larger, smaller)
        gains = [seeds.compare(*pair).difference for pair in (larger, smaller)]
        rows.append([
            label, *(f"{gain:+.2f}" for gain in gains), f"{result.difference:+.2f}",
            tables.interval(result), tables.probability(result.p_value, seeds.RESAMPLES),
        ])  # fmt: skip
    return rows
