"""Results of a run on the screen: the metrics of each split in a line."""

from collections.abc import Collection, Sequence

from attention_jax.runs.run_directory import RunDirectory, read_json

# What is worth a look whatever the task, after its own metrics.
_SHOWN = ("aer", "aer_threshold", "aer_reverse", "aer_grow_diag", "match", "perplexity", "accuracy")


def format_results(
    directory: RunDirectory, shown: Sequence[str], splits: Collection[str] | None = None
) -> str:
    """Returns the results of a run as a few lines for the screen.

    Args:
      directory: The run's.
      shown: Names of the task's own that are shown.
      splits: Of which splits; all if None.
    """
    lines = []
    for split, metrics in (read_json(directory.results) or {}).items():
        if splits is not None and split.partition(".")[0] not in splits:
            continue
        found = [name for name in (*shown, *_SHOWN) if metrics.get(name) is not None]
        values = [f"{name} {metrics[name]:.2f}" for name in found]
        lines.append(f"{split:<11} {'  '.join(values)}")
    return "\n".join([*lines, f"Everything is in {directory.path}"])
