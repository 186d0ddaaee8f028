"""The heads of a trained run: what each attends to, and what is lost without it."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.data.tasks import Split
from attention_jax.errors import UserError
from attention_jax.evaluation.attention_alignment import score_attention
from attention_jax.evaluation.head_statistics import head_statistics
from attention_jax.inference.forced_decoding import forced_attention, has_heads
from attention_jax.inference.gold_links import GoldComparison
from attention_jax.inference.trained import TrainedRun
from attention_jax.objectives import Objective
from attention_jax.training.measuring.validation import Measurement, batches_of_process
from attention_jax.types import Params

_OUTPUT = "output_kernel"
_COLUMNS = ("aer", "entropy", "monotonicity", "diagonality", "positional", "offset", "nll_without")


@dataclasses.dataclass(frozen=True)
class Head:
    """One head.

    Attributes:
      layer: Names of the modules that it is in, such as "decoder/layer_0/attention".
      number: Which of the layer's heads it is, from 0.
      values: What was measured, by name.
    """

    layer: str
    number: int
    values: Mapping[str, float]


def check_heads(run: TrainedRun, split: Split) -> None:
    """Raises `UserError` if a run's attention has a single head."""
    if not run.model.is_aligning or not has_heads(run, split):
        raise UserError("--heads: expected a model with several heads, found none")


def analyse_heads(run: TrainedRun, split: Split, gold: GoldComparison | None = None) -> list[Head]:
    """Measures every head.

    Heads that attend to the source get the statistics of their weights while the references are
    written, and the AER if there are gold links. All heads get `nll_without`: by how much the
    negative log-likelihood of a token grows when what the head reads is put to zero.

    Args:
      run: A run whose attention has several heads.
      split: What it is measured on.
      gold: The words of the split's pairs, some with gold links.

    Returns:
      Heads that attend to the source first, in the order of the attention's `head_weights`.
    """
    forced = [each.heads for each in forced_attention(run, split)]
    statistics = head_statistics(forced)
    if gold is not None:
        golds = [gold.links[number] for number in sorted(gold.links)]
        for head, values in enumerate(statistics):
            words = [gold.forward[number].heads[head] for number in sorted(gold.links)]
            values["aer"] = score_attention(words, golds)["aer"]
    losses = dict(_losses(run, split))
    cross = [place for place in losses if _is_cross(place[0])]
    if len(cross) != len(statistics):  # heads that split depths have no output of their own
        cross = [("attention", head) for head in range(len(statistics))]
    heads = []
    for place, values in zip(cross, statistics, strict=True):
        lost = {"nll_without": losses[place]} if place in losses else {}
        heads.append(Head(*place, {**values, **lost}))
    others = [place for place in losses if not _is_cross(place[0])]
    return [*heads, *(Head(*place, {"nll_without": losses[place]}) for place in others)]


def write_heads(run: TrainedRun, split: Split, heads: Sequence[Head]) -> None:
    """Writes `heads.SPLIT.tsv` and `plots/heads.SPLIT.png`."""
    columns = [name for name in _COLUMNS if any(name in head.values for head in heads)]
    rows = [("layer", "head", *columns)]
    for head in heads:
        values = (f"{head.values[name]:.4f}" if name in head.values else "" for name in columns)
        rows.append((head.layer, str(head.number), *values))
    directory = run.directory
    directory.write_table(directory.path / f"heads.{split.name}.tsv", rows)
    if not directory.writes:
        return
    from attention_jax.plotting.figure import save_figure
    from attention_jax.plotting.heads import head_grid

    shown = {name: _grid(heads, name) for name in columns if name != "offset"}
    with directory.plot(f"heads.{split.name}.png") as path:
        save_figure(head_grid(shown), path)


def _grid(heads: Sequence[Head], name: str) -> dict[str, list[float]]:
    grid: dict[str, list[float]] = {}
    for head in heads:
        if name in head.values:
            grid.setdefault(head.layer, []).append(head.values[name])
    return grid


def _losses(run: TrainedRun, split: Split) -> Iterator[tuple[tuple[str, int], float]]:
    """Yields (layer, head) and by how much the loss grows without that head."""
    measure = Measurement(
        run.model, Objective(run.config.objectives), run.strategy, run.shardings
    )
    batches = batches_of_process(split, run.config, run.strategy)
    whole = measure(run.params, batches)["nll"]
    for path, kernel in jax.tree_util.tree_leaves_with_path(run.params):
        names = [str(entry.key) for entry in path]
        if names[-1] != _OUTPUT:
            continue
        for head in range(kernel.shape[0]):
            without = _without(run.params, names, head)
            yield ("/".join(names[:-1]), head), measure(without, batches)["nll"] - whole


def _without(params: Params, names: Sequence[str], head: int) -> Any:
    """Returns parameters with which nothing of a head's context goes on."""
    first, *rest = names
    if rest:
        return {**params, first: _without(params[first], rest, head)}
    kernel = params[first]
    silent = jax.device_put(kernel.at[head].set(jnp.zeros((), kernel.dtype)), kernel.sharding)
    return {**params, first: silent}


def _is_cross(layer: str) -> bool:
    return layer.split("/")[-1] == "attention"
