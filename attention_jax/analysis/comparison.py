"""Significance tests: whether the outputs of two runs differ by more than chance."""

from collections.abc import Mapping, Sequence
from typing import Any

from attention_jax.configuration import plain
from attention_jax.data.examples import Split
from attention_jax.evaluation.bootstrap import paired_difference
from attention_jax.runs import provenance
from attention_jax.runs.load import TrainedRun

RESAMPLES, SEED = 1000, 0


def compare_outputs(
    run: TrainedRun, split: Split, outputs: Sequence[str], others: Sequence[str]
) -> dict[str, dict[str, float]]:
    """Paired bootstrap: tests whether a run's outputs are better or worse than those of another.

    Args:
      run: The run; its task has the metrics.
      split: The sources and references.
      outputs: The run's output for each source.
      others: The other system's output for each source.

    Returns:
      For each metric (`bleu` and `chrf`, or `per` and `wer`) the `score` of the outputs, the score
      of the others as `against`, their `difference` (the first minus the second), `low` and `high`,
      the ends of its 95 % interval, and `p_value`. Empty if the task has no metrics.
    """
    statistics, data_config = run.task.statistics, run.config.data
    if statistics is None:
        return {}
    # The others come first: `paired_difference` subtracts its first system from its second.
    both = [statistics(split, texts, data_config) for texts in (others, outputs)]
    found = {}
    for name, (rows, score) in both[1].items():
        other_rows, _ = both[0][name]
        test = paired_difference(other_rows, rows, score, resamples=RESAMPLES, seed=SEED)
        found[name] = {
            "score": float(score(rows.sum(axis=0))),
            "against": float(score(other_rows.sum(axis=0))),
            **vars(test),
        }
    return found


def describe_comparison(
    run: TrainedRun, other: TrainedRun, split: Split, metrics: Mapping[str, Mapping[str, float]]
) -> dict[str, Any]:
    """Returns an entry of `comparison.SPLIT.json`: a comparison, and how it was made."""
    return {
        "against": str(other.directory.path),
        "at": provenance.now(),
        "sentences": len(split),
        "resamples": RESAMPLES,
        "seed": SEED,
        "step": run.step,
        "against_step": other.step,
        "search": plain(run.config.search),
        "against_search": plain(other.config.search),
        "metrics": metrics,
    }


def format_comparison(name: str, split: str, metrics: Mapping[str, Mapping[str, float]]) -> str:
    """Formats a comparison as lines for the screen."""
    lines = [f"{split} against {name}, difference with 95 % interval:"]
    for metric, found in metrics.items():
        lines.append(
            f"  {metric:<6}{found['score']:6.2f} - {found['against']:.2f} = "
            f"{found['difference']:+.2f} [{found['low']:+.2f}, {found['high']:+.2f}]  "
            f"p {found['p_value']:.3f}"
        )
    return "\n".join(lines)


def other_search(run: TrainedRun, other: TrainedRun) -> list[str]:
    """Returns a line with the search settings in which two runs differ, if they do in any."""
    here, there = plain(run.config.search), plain(other.config.search)
    found = [f"{name} {here[name]} - {there[name]}" for name in here if here[name] != there[name]]
    return [f"  searched otherwise: {', '.join(found)}"] if found else []
