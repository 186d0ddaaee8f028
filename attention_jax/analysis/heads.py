"""Attention head analysis: what each head of a trained run attends to, and its ablation.

Layers and heads are counted from 0 wherever they are named, as in configs.
"""

import csv
import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from attention_jax.analysis.gold_links import GoldComparison
from attention_jax.analysis.head_names import cross_heads, head_name
from attention_jax.analysis.self_attention import has_self_heads, self_attention
from attention_jax.data.examples import Split
from attention_jax.decoding.forced_decoding import forced_attention, has_heads
from attention_jax.decoding.teacher_forcing import TeacherForcing, batches_of_process
from attention_jax.errors import UserError
from attention_jax.evaluation.attention_alignment import score_attention
from attention_jax.evaluation.head_statistics import head_statistics
from attention_jax.objectives import Objective
from attention_jax.runs.load import TrainedRun

Place = tuple[str, int]  # the path of a head's module, and its number in it

_COLUMNS = ("aer", "entropy", "monotonicity", "diagonality", "positional", "offset", "nll_without")


@dataclasses.dataclass(frozen=True)
class HeadReport:
    """Statistics of an attention head.

    Attributes:
      layer: The path of its module, such as "decoder/layer_0/attention".
      number: Its number among the layer's heads.
      values: The statistics by name.
    """

    layer: str
    number: int
    values: Mapping[str, float]

    @property
    def is_cross(self) -> bool:
        """Whether it is a head of cross-attention, from target to source."""
        return self.layer.split("/")[-1] == "attention"

    @property
    def name(self) -> str:
        """Its name among the heads of its kind."""
        return head_name(self.layer, self.number)


def check_heads(run: TrainedRun, split: Split) -> None:
    """Multi-head attention: raises `UserError` if no attention of a run has several heads."""
    if not (_has_cross_heads(run, split) or has_self_heads(run, split)):
        raise UserError("--heads: expected a model with several heads, found none")


def analyse_heads(
    run: TrainedRun, split: Split, gold: GoldComparison | None = None
) -> list[HeadReport]:
    """Attention head analysis: computes the statistics of every head, and its ablation.

    The statistics are those of the weights in forced decoding of the references, at the step that
    links each token. With gold links,
    heads of cross-attention also get their AER. `nll_without` is the increase of a token's negative
    log-likelihood when the head is ablated; see `losses_without` for the heads that have it. Of a
    bidirectional model, the forward model is analysed.

    Args:
      run: A run with an attention that has several heads.
      split: The pairs on which heads are measured.
      gold: Forced attention between the words of the split, and gold links.

    Returns:
      Heads of cross-attention first, in the order of the attention's `head_weights`.
    """
    cross = _cross_attention(run, split, gold) if _has_cross_heads(run, split) else {}
    measured = dict(cross)
    for layer, attended in self_attention(run, split).items():
        # From a list of (weights, reach) to a list of weights and a list of reaches.
        found = head_statistics(*zip(*attended, strict=True))
        measured |= {(layer, head): values for head, values in enumerate(found)}
    for place, loss in losses_without(run, split, list(measured)):
        measured.setdefault(place, {})["nll_without"] = loss
    return [HeadReport(*place, values) for place, values in measured.items()]


def losses_without(
    run: TrainedRun, split: Split, places: Sequence[Place]
) -> Iterator[tuple[Place, float]]:
    """Head ablation: yields each head and the rise of a token's negative log-likelihood without it.

    A mask hides everything from the head, so that its output is zero. A head that is alone in its
    layer is not ablated.

    Args:
      run: A run with heads; of a bidirectional one, the forward model's.
      split: The pairs on which the loss is measured.
      places: The heads.
    """
    batches = batches_of_process(split, run.config, run.strategy)
    objective = Objective(run.config.objectives)
    measure = TeacherForcing(run.model, objective, run.strategy, run.shardings)
    sizes = Counter(path for path, _ in places)
    whole = {_module(path): _heads(size) for path, size in sizes.items() if size > 1}
    loss = measure(run.params, batches, whole)["nll"]
    for path, head in places:
        if sizes[path] > 1:
            masks = {**whole, _module(path): _heads(sizes[path], without=head)}
            yield (path, head), measure(run.params, batches, masks)["nll"] - loss


def write_heads(run: TrainedRun, split: Split, heads: Sequence[HeadReport]) -> None:
    """Attention head analysis: writes `heads.SPLIT.tsv` and `plots/heads.SPLIT.png`."""
    columns = [name for name in _COLUMNS if any(name in head.values for head in heads)]
    rows = [("layer", "head", *columns)]
    for head in heads:
        values = (f"{head.values[name]:.4f}" if name in head.values else "" for name in columns)
        rows.append((head.layer, str(head.number), *values))
    directory = run.directory
    directory.write_table(directory.heads(split.name), rows)
    if not directory.writes:
        return
    # Imported here because Matplotlib takes a second, for which no error should wait.
    from attention_jax.plotting.figure import save_figure
    from attention_jax.plotting.heads import head_grid

    shown = {name: _grid(heads, name) for name in columns if name != "offset"}
    with directory.plot(f"heads.{split.name}.png") as path:
        save_figure(head_grid(shown), path)


def read_heads(run: TrainedRun, split: Split) -> list[HeadReport]:
    """Attention head analysis: reads the table of `write_heads`, rounded as that is.

    Without a table, or with one that somebody has edited, the list is empty: it can be made again.
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
    """Returns the statistics of the heads of cross-attention, by layer and number."""
    attended = [run.linking_heads(each.heads) for each in forced_attention(run, split)]
    statistics = head_statistics(attended)
    if gold is not None:
        golds = [gold.links[number] for number in sorted(gold.links)]
        for head, values in enumerate(statistics):
            words = [gold.forward[number].linking.heads[head] for number in sorted(gold.links)]
            values["aer"] = score_attention(words, golds)["aer"]
    return dict(zip(cross_heads(run.params, len(statistics)), statistics, strict=True))


def _module(path: str) -> str:
    """Returns the path of a layer; a mechanism without parameters has none of its own."""
    return "decoder/attention" if path == "attention" else path


def _heads(number: int, without: int = -1) -> np.ndarray:
    """Returns the mask `1 H 1 1` of a layer: all heads may read, but for one that is ablated."""
    return (np.arange(number) != without)[None, :, None, None]


def _grid(heads: Sequence[HeadReport], name: str) -> dict[str, list[float]]:
    """Collects a statistic of every head, in a list for each layer."""
    grid: dict[str, list[float]] = {}
    for head in heads:
        if name in head.values:
            grid.setdefault(head.layer, []).append(head.values[name])
    return grid
