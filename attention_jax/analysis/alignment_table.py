"""Alignment tables: how the attention of a run agrees with gold links, for the screen."""

from collections.abc import Mapping, Sequence

from attention_jax.evaluation.symmetrization import METHODS

_LINKS = {"": "forward", "_reverse": "reverse"}
_LINKS |= {f"_{method.replace('-', '_')}": method for method in METHODS}
_SHIFTED = {
    "": "as it is",
    "_before": "row before",
    "_after": "row after",
    "_source_before": "column before",
    "_source_after": "column after",
}


def format_alignment(split: str, scores: Mapping[str, float]) -> str:
    """Returns as lines what `GoldComparison.scores` has found.

    Args:
      split: The name of the split.
      scores: Its scores, in percent; lines of what was not asked for are left out.
    """
    links = {f"{kind}{end}": name + (", by threshold" if kind else "")
             for kind in ("", "_threshold") for end, name in _LINKS.items()}  # fmt: skip
    return "\n".join([
        *_table(f"{split}, links against gold ones", links, scores,
                {"precision": "alignment_precision", "recall": "alignment_recall", "AER": "aer"}),
        *_table(f"{split}, attention against gold links", _SHIFTED, scores,
                {"match": "match", "mass": "probability_mass"}),
    ])  # fmt: skip


def _table(
    title: str, rows: Mapping[str, str], scores: Mapping[str, float], columns: Mapping[str, str]
) -> Sequence[str]:
    """Returns a line for each row that was measured; a score is named as its column, then row."""
    lines = [f"{title}:".ljust(40) + "".join(f"{name:>10}" for name in columns)]
    for end, name in rows.items():
        values = [scores.get(f"{column}{end}") for column in columns.values()]
        if None not in values:
            lines.append(f"  {name:<38}" + "".join(f"{value:10.2f}" for value in values))
    return lines
