"""Measures training, beam search and attention on one GPU beside PyTorch; see `USAGE`."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.benchmarks.speed import decoding, program, report, training
from experiments.benchmarks.speed.benchmark import (
    PROJECT,
    TORCH,
    Setting,
    Side,
    Workload,
)
from experiments.benchmarks.speed.harness import Conditions
from experiments.benchmarks.speed.workloads import Sentences, Sizes, TransformerSizes

USAGE = """
Measures on one GPU how fast the models of experiments.benchmarks.speed.training and .decoding
train and search, and additive attention alone: this project beside eager PyTorch, torch.compile,
and that with CUDA graphs. Products are TensorFloat-32 everywhere. Compiling takes longest, half a
minute for some contenders: the page is written after every workload, and the same command measures
those that are missing.

  python -m experiments.benchmarks.speed.gpu [--OPTION=VALUE ...]
"""
BATCHES = (64, 512)
# What TensorFloat-32 keeps of a factor, 10 bits, limits how far two orders of a sum agree.
TOLERANCE = 5e-3
PEAK_TFLOPS = 494.7  # dense TensorFloat-32 of the H100 and H200 (SXM), by their data sheets
_CONDITIONS = Conditions(rounds=5, min_seconds=0.3)


def make_workloads(setting: Setting) -> list[Workload]:
    """Prepares inputs and returns what is measured."""
    folder = setting.workdir / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for sizes, name, title in (
        (Sizes(), "rnn", "recurrent model"),
        (TransformerSizes(), "transformer", "Transformer"),
    ):
        parameters = folder / f"{name}.npz"
        common = {"sizes": dataclasses.asdict(sizes), "parameters": str(parameters)}
        setting.prepare({**common, "kind": "parameters", "path": str(parameters)})
        for batch in BATCHES:
            data = folder / f"batch_{batch}.npz"
            Sentences.random(batch, training.LENGTH, training.LENGTH, sizes.vocabulary).save(data)
            made.append(_training({**common, "data": str(data), "batch": batch}, name, title))
        data = folder / f"batch_{BATCHES[0]}.npz"
        made.append(_search({**common, "data": str(data)}, name, title))
    made.append(training.additive_attention(training.ATTENTION_SHAPE))
    return [dataclasses.replace(each, conditions=_CONDITIONS) for each in made]


def page(results: Mapping[str, Any]) -> str:
    """Returns the page: the tables, and the model's arithmetic against the GPU's peak."""
    rows = [
        f"- {result['title']}, {each['device']}: {each['model_flops'] / 1e9:.0f} GFLOP in "
        f"{each['milliseconds']['median']:.2f} ms, {_utilisation(each):.1%} of the peak"
        for measured in results.values()
        for result in measured
        for name, each in result["contenders"].items()
        if name == "attention_jax" and "model_flops" in each
    ]
    heading = f"## Model FLOPs utilisation, of {PEAK_TFLOPS} TFLOP/s in TensorFloat-32"
    return f"{report.page('Speed on a GPU', results)}\n{heading}\n\n" + "\n".join(rows) + "\n"


def _utilisation(contender: Mapping[str, Any]) -> float:
    seconds = contender["milliseconds"]["median"] / 1e3
    return contender["model_flops"] / seconds / (PEAK_TFLOPS * 1e12)


def _training(common: Mapping[str, Any], name: str, title: str) -> Workload:
    batch = common["batch"]
    task = {**common, "kind": "train", "batching": "whole"}
    return Workload(
        name=f"{name}_{batch}",
        title=f"Training step of a {title}, {batch} sentences of {training.LENGTH} tokens",
        unit="target tokens",
        sides=_sides(task, with_graphs=batch == BATCHES[0]),
        tolerance=TOLERANCE,
    )


def _search(common: Mapping[str, Any], name: str, title: str) -> Workload:
    length = decoding.LENGTH
    task = {
        **common, "kind": "beam", "end_bias": 0.0, "width": decoding.WIDTH,
        "shortest": length, "longest": length,
    }  # fmt: skip
    return Workload(
        name=f"{name}_beam",
        title=f"Beam search of a {title}, {decoding.WIDTH} beams, {BATCHES[0]} sentences, "
        f"{length} steps",
        unit="sentences",
        sides=_sides(task, with_graphs=False),  # the length of a cache grows with every step
        tolerance=TOLERANCE,
    )


def _sides(task: Mapping[str, Any], with_graphs: bool) -> Sequence[Side]:
    graphs = {**task, "compiled": True, "graphs": True}
    return [
        Side("attention_jax", PROJECT, task),
        Side("PyTorch, eager", TORCH, {**task, "compiled": False}),
        Side("torch.compile", TORCH, {**task, "compiled": True}),
        *([Side("torch.compile, CUDA graphs", TORCH, graphs)] if with_graphs else []),
    ]


if __name__ == "__main__":
    program.run("gpu", USAGE, make_workloads, page, platform="cuda")
