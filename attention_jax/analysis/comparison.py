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
    """Tests whether outputs are better or worse than others, by a paired bootstrap.

    Args:
      run: Whose outputs they are, for its task.
      split: The sources and references.
      outputs: One for each source.
      others: Those that they are compared with.

    Returns:
      For each metric (`bleu` and `chrf`, or `per` and `wer`) the `score` of the outputs, that of
      the others as `against`, `difference` (the first minus the second), `low` and `high`, the
      ends of its 95 % interval, and `p_value`.
    """
    statistics, data_config = run.task.statistics, run.config.data
    if statistics is None:
        return {}
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
    """Returns what `comparison.SPLIT.json` holds."""
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
    """Returns a comparison as lines for the screen."""
    lines = [f"{split} against {name}, difference with 95 % interval:"]
    for metric, found in metrics.items():
        lines.append(
            f"  {metric:<6}{found['score']:6.2f} - {found['against']:.2f} = "
            f"{found['difference']:+.2f} [{found['low']:+.2f}, {found['high']:+.2f}]  "
            f"p {found['p_value']:.3f}"
        )
    return "\n".join(lines)


def other_search(run: TrainedRun, other: TrainedRun) -> list[str]:
    """Returns a line that names what differs in how two runs are searched, if anything does."""
    here, there = plain(run.config.search), plain(other.config.search)
    found = [f"{name} {here[name]} - {there[name]}" for name in here if here[name] != there[name]]
    return [f"  searched otherwise: {', '.join(found)}"] if found else []
