"""Results of a run for the screen: one line of metrics for each split."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from attention_jax.runs.run_directory import RunDirectory, read_json

# Metrics of interest whatever the task, shown after the task's own.
SHOWN = (
    "aer", "aer_threshold", "aer_reverse", "aer_grow_diag", "match", "average_lagging",
    "perplexity", "accuracy",
)  # fmt: skip
_SIGNATURE = "_signature"  # of a metric that is a text, kept with how a split was evaluated


def format_results(
    directory: RunDirectory,
    shown: Sequence[str],
    splits: Collection[str] | None = None,
    table: Callable[[Mapping[str, Any]], Sequence[str]] | None = None,
) -> str:
    """Formats the results of a run as a few lines, the last of which names the page to open.

    Args:
      directory: The run's directory.
      shown: Names of the task's own metrics to show.
      splits: The splits to show; all if None.
      table: The task's function from a split's metrics to further lines.
    """
    lines = []
    for split, metrics in (read_json(directory.results) or {}).items():
        if splits is not None and split.partition(".")[0] not in splits:
            continue
        found = [name for name in (*shown, *SHOWN) if metrics.get(name) is not None]
        values = [f"{name} {metrics[name]:.2f}" for name in found]
        lines.append(f"{split:<11} {'  '.join(values)}")
        known = directory.recorded_evaluation(split)
        signatures = {name: text for name, text in known.items() if name.endswith(_SIGNATURE)}
        lines += [] if table is None else table({**metrics, **signatures})
    # The page of the split that was evaluated last.
    pages = [page for split in splits or () for page in directory.pages(split) if page.exists()]
    opened = f"; open {pages[-1]}" if pages else ""
    return "\n".join([*lines, f"Everything is in {directory.outputs}{opened}"])
