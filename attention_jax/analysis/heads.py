"""Attention heads of a trained run: what each attends to, and what is lost without it.

Layers and heads are counted from 0 wherever they are named, as in configs.
"""

import csv
import dataclasses
from collections.abc import Mapping, Sequence

from attention_jax.analysis.gold_links import GoldComparison
from attention_jax.analysis.head_ablation import losses_without
from attention_jax.analysis.head_names import cross_heads, head_name
from attention_jax.analysis.self_attention import has_self_heads, self_attention
from attention_jax.data.examples import Split
from attention_jax.decoding.forced_decoding import forced_attention, has_heads
from attention_jax.errors import UserError
from attention_jax.evaluation.attention_alignment import score_attention
from attention_jax.evaluation.head_statistics import head_statistics
from attention_jax.runs.load import TrainedRun

_COLUMNS = ("aer", "entropy", "monotonicity", "diagonality", "positional", "offset", "nll_without")


@dataclasses.dataclass(frozen=True)
class HeadReport:
    """One head.

    Attributes:
      layer: Names of the modules that it is in, such as "decoder/layer_0/attention".
      number: Which of the layer's heads it is, from 0.
      values: What was measured, by name.
    """

    layer: str
    number: int
    values: Mapping[str, float]

    @property
    def is_cross(self) -> bool:
        """Whether it attends to the source from the target."""
        return self.layer.split("/")[-1] == "attention"

    @property
    def name(self) -> str:
        """What it is called among the heads of its kind."""
        return head_name(self.layer, self.number)


def check_heads(run: TrainedRun, split: Split) -> None:
    """Raises `UserError` if no attention of a run has several heads."""
    if not (_has_cross_heads(run, split) or has_self_heads(run, split)):
        raise UserError("--heads: expected a model with several heads, found none")


def analyse_heads(
    run: TrainedRun, split: Split, gold: GoldComparison | None = None
) -> list[HeadReport]:
    """Measures every head.

    Heads get the statistics of their weights while the references are written; those that attend
    to the source also the AER if there are gold links, of the step that links. `nll_without` is by
    how much the negative log-likelihood of a token grows when what the head reads is put to zero;
    see `losses_without` for the heads that have it. Of a model of both directions it is the forward
    one's heads.

    Args:
      run: A run with an attention that has several heads.
      split: What it is measured on.
      gold: The words of the split's pairs, some with gold links.

    Returns:
      Heads that attend to the source first, in the order of the attention's `head_weights`.
    """
    cross = _cross_attention(run, split, gold) if _has_cross_heads(run, split) else {}
    measured = dict(cross)
    for layer, attended in self_attention(run, split).items():
        found = head_statistics(*zip(*attended, strict=True))
        measured |= {(layer, head): values for head, values in enumerate(found)}
    for place, loss in losses_without(run, split, list(measured)):
        measured.setdefault(place, {})["nll_without"] = loss
    return [HeadReport(*place, values) for place, values in measured.items()]


def write_heads(run: TrainedRun, split: Split, heads: Sequence[HeadReport]) -> None:
    """Writes `heads.SPLIT.tsv` and `plots/heads.SPLIT.png`."""
    columns = [name for name in _COLUMNS if any(name in head.values for head in heads)]
    rows = [("layer", "head", *columns)]
    for head in heads:
        values = (f"{head.values[name]:.4f}" if name in head.values else "" for name in columns)
        rows.append((head.layer, str(head.number), *values))
    directory = run.directory
    directory.write_table(directory.heads(split.name), rows)
    if not directory.writes:
        return
    from attention_jax.plotting.figure import save_figure
    from attention_jax.plotting.heads import head_grid

    shown = {name: _grid(heads, name) for name in columns if name != "offset"}
    with directory.plot(f"heads.{split.name}.png") as path:
        save_figure(head_grid(shown), path)


def read_heads(run: TrainedRun, split: Split) -> list[HeadReport]:
    """Returns what `write_heads` has written of a split, to its digits.

    Nothing if it has not, or if somebody has changed the table since: it can be written again.
    """
    table = run.directory.heads(split.name)
    try:
        lines = table.read_text(encoding="utf-8").splitlines()
        return [
            HeadReport(
                row.pop("layer"),
                int(row.pop("head")),
                {name: float(text) for name, text in row.items() if text},
            )
            for row in csv.DictReader(lines, delimiter="\t")
        ]
    except (OSError, ValueError, KeyError, TypeError):
        return []


def _has_cross_heads(run: TrainedRun, split: Split) -> bool:
    return run.links_tokens and has_heads(run, split)


def _cross_attention(
    run: TrainedRun, split: Split, gold: GoldComparison | None
) -> dict[tuple[str, int], dict[str, float]]:
    """Returns the statistics of the heads that attend to the source, by layer and number."""
    statistics = head_statistics([each.heads for each in forced_attention(run, split)])
    if gold is not None:
        golds = [gold.links[number] for number in sorted(gold.links)]
        for head, values in enumerate(statistics):
            words = [gold.forward[number].linking.heads[head] for number in sorted(gold.links)]
            values["aer"] = score_attention(words, golds)["aer"]
    return dict(zip(cross_heads(run.params, len(statistics)), statistics, strict=True))


def _grid(heads: Sequence[HeadReport], name: str) -> dict[str, list[float]]:
    grid: dict[str, list[float]] = {}
    for head in heads:
        if name in head.values:
            grid.setdefault(head.layer, []).append(head.values[name])
    return grid
