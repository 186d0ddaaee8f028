"""Attention to all sources of one example, be they texts, pictures or sound, for a page.

The record of a run keeps it. Texts are shown as heat maps, pictures as each word has seen them, and
sound as its spectrogram with the attention below.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from attention_jax.analysis.pictures import canvas_title, found_starts
from attention_jax.data.examples import Split
from attention_jax.data.pictures import Canvas
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.decoding.forced_decoding import kept_attention
from attention_jax.decoding.searcher import Searcher
from attention_jax.decoding.source_tokens import source_tokens
from attention_jax.ops.spans import to_positions
from attention_jax.plotting.attended_picture import AttendedPicture
from attention_jax.plotting.canvases import attended_canvases
from attention_jax.plotting.heat_map import HeatMap, heat_map_grid
from attention_jax.runs.load import TrainedRun, task_of
from attention_jax.runs.run_directory import writing
from attention_jax.sweeps.grid import GridRun
from attention_jax.sweeps.kept_files import array_lines, text_array
from attention_jax.types import Batch, Model, Params
from experiments.kit import kept_counts, pictures

USAGE = """
Decodes one test example, and keeps what its output has attended to in every source, in
sample_attention.npz.

usage: python -m experiments.kit.sample_attention --workdir=RUN
"""
FILE = "sample_attention.npz"
LENGTHS = range(5, 13)  # tokens of the reference, its end among them, that can be seen in a page
_COLUMNS = 2


@dataclasses.dataclass(frozen=True, eq=False)
class SourceAttention:
    """Attention of an output to one of its sources.

    Attributes:
      weights: `T S`.
      seen: The S tokens of a text, or what a picture or sound looks like.
    """

    weights: Float[np.ndarray, "T S"]
    seen: Sequence[str] | Canvas


@dataclasses.dataclass(frozen=True, eq=False)
class SampleAttention:
    """Attention of one output to all of its sources.

    Attributes:
      title: What the example is called.
      target: The T tokens of the output.
      sources: The attention to each source by its name, the first one first.
      starts: When words begin by the attention, in seconds; empty where nothing is heard.
    """

    title: str
    target: Sequence[str]
    sources: Mapping[str, SourceAttention]
    starts: Sequence[float] = ()


def record(run: TrainedRun) -> None:
    """Writes the attention to a test example into the run directory.

    Raises:
      RunDirectoryError: If it cannot be written.
    """
    test = task_of(run).split("test")
    kept, path = arrays(sample(run, test.select([chosen(test)]))), run.directory.path / FILE
    with writing(path):
        np.savez_compressed(path, **kept)


def chosen(split: Split) -> int:
    """Returns the first example whose reference can be seen in a page; the first one if none is."""
    lengths = map(len, split.target_ids)
    return next((index for index, length in enumerate(lengths) if length in LENGTHS), 0)


def sample(run: TrainedRun, example: Split) -> SampleAttention:
    """Decodes a split of one example, and returns what its output has attended to.

    Where the search has found no output, it is the reference.
    """
    [found] = Searcher(run.model, run.config.search)(run.params, example, run.config.data)
    ids = found[0].tokens if found else example.target_ids[0]
    weights = _weights(run, example.with_target_ids([ids]))
    target = run.target_vocabulary.tokens(ids)
    sources = {
        name: SourceAttention(each[: len(target)], _seen(run, example, name))
        for name, each in weights.items()
    }
    first = next(iter(sources.values()))
    named = first.seen if isinstance(first.seen, Canvas) else None
    title = example.sources[0] if named is None else canvas_title(example, 0, named)
    return SampleAttention(title, target, sources, found_starts(run, target, first.weights))


def _weights(run: TrainedRun, example: Split) -> dict[str, Float[np.ndarray, "T S"]]:
    """Forced decoding: returns the attention to the positions of each source."""
    batch = next(iter(make_eval_batches(example, run.config.data)))
    row = batch["index"].tolist().index(0)
    found = jax.device_get(jax.jit(functools.partial(_attend, run.model))(run.params, batch))
    cut = {name: each[row][:, : len(example.columns[name][0])] for name, each in found.items()}
    first = {run.model.begins_from: run.linking_weights(cut.pop(run.model.begins_from))}
    # An aligner is of the first source alone.
    others = {name: run.linking_heads(each[None])[0] for name, each in cut.items()}
    return {name: np.float32(each) for name, each in (first | others).items()}


def _attend(model: Model, params: Params, batch: Batch) -> dict[str, Any]:
    output, first = model.apply(params, batch), model.begins_from
    found = {first: kept_attention(output, batch[first].shape[1])["weights"]}
    for key, weights in output.outputs.items():
        kind, _, name = key.partition("/")
        if kind == "attention" and name in batch:
            spans, size = output.outputs[f"slots/{name}"].spans, batch[name].shape[1]
            found[name] = weights if spans is None else to_positions(weights, spans, size)
    return found


def _seen(run: TrainedRun, example: Split, name: str) -> Sequence[str] | Canvas:
    """Returns the tokens of a source, or what it looks like."""
    if name in run.task.beside:
        return run.config.data.canvas(example.columns[name][0])
    if name == run.model.begins_from and run.draws_on_canvas:
        return run.task.canvas(example, 0, run.config.data)
    return source_tokens(example, name, 0)


def arrays(kept: SampleAttention) -> dict[str, np.ndarray]:
    """Returns what a record keeps of it."""
    found = {
        "texts": text_array([kept.title, *kept.sources]), "target": text_array(kept.target),
    }  # fmt: skip
    if len(kept.starts):
        found["starts"] = np.float32(kept.starts)
    for name, source in kept.sources.items():
        found[f"{name}.weights"] = np.float32(source.weights)
        if not isinstance(source.seen, Canvas):
            found[f"{name}.tokens"] = text_array(source.seen)
            continue
        found[f"{name}.pixels"] = source.seen.pixels
        found[f"{name}.boxes"] = np.int32(source.seen.boxes)
        found[f"{name}.seconds"] = np.float32([source.seen.seconds])
        if len(source.seen.starts):
            found[f"{name}.starts"] = np.float32(source.seen.starts)
    return found


def of_run(run: GridRun) -> SampleAttention:
    """Returns what a finished run has attended to, from its record."""
    kept = run.arrays(FILE)
    title, *names = array_lines(kept["texts"])
    sources = {}
    for name in names:
        if f"{name}.tokens" in kept:
            seen = array_lines(kept[f"{name}.tokens"])
        else:
            seen = Canvas(
                kept[f"{name}.pixels"], kept[f"{name}.boxes"], float(kept[f"{name}.seconds"][0]),
                kept.get(f"{name}.starts", np.zeros(0)).tolist(),
            )  # fmt: skip
        sources[name] = SourceAttention(kept[f"{name}.weights"], seen)
    starts = kept.get("starts", np.zeros(0)).tolist()
    return SampleAttention(title, array_lines(kept["target"]), sources, starts)


def write_pictures(runs: Mapping[str, GridRun], folder: Path) -> list[Path]:
    """Draws what finished runs have attended to: texts in one picture, what is seen in another.

    Args:
      runs: By their titles; those whose records lack it, as earlier ones do, are left out.
      folder: Where to write `maps.png` and `attention.png`.

    Returns:
      The files written; none where there is nothing to draw.
    """
    maps, drawn, written = [], [], []
    for title, run in runs.items():
        if run.keeps(FILE):
            found = of_run(run)
            maps += _maps(title, found)
            drawn += _drawn(title, found)
    if maps:
        pictures.save(heat_map_grid(maps, _COLUMNS), folder / "maps.png")
        written.append(folder / "maps.png")
    if drawn:
        pictures.save(attended_canvases(drawn), folder / "attention.png")
        written.append(folder / "attention.png")
    return written


def _maps(title: str, found: SampleAttention) -> list[HeatMap]:
    texts = {
        name: source
        for name, source in found.sources.items()
        if not isinstance(source.seen, Canvas)
    }
    return [
        HeatMap(
            source.weights.astype(np.float64), source.seen, found.target,
            title if len(texts) == 1 else f"{title}: {name}",
        )
        for name, source in texts.items()
    ]  # fmt: skip


def _drawn(title: str, found: SampleAttention) -> list[AttendedPicture]:
    return [
        AttendedPicture(
            source.seen, source.weights.astype(np.float64), found.target,
            f"{title}: {found.title}", found.starts,
        )
        for source in found.sources.values()
        if isinstance(source.seen, Canvas)
    ]  # fmt: skip


if __name__ == "__main__":
    kept_counts.run_program(record, USAGE)
