"""Measures training beside PyTorch, torch.compile and JoeyNMT; see `USAGE`."""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.benchmarks.speed import program, report
from experiments.benchmarks.speed.benchmark import JOEYNMT, PROJECT, TORCH, Setting, Side, Workload
from experiments.benchmarks.speed.harness import Conditions
from experiments.benchmarks.speed.workloads import Sentences, Sizes, TransformerSizes

USAGE = """
Measures how fast a recurrent model with additive attention and input feeding, and a Transformer,
train: this project beside eager PyTorch, the same under torch.compile, and JoeyNMT. Each is a
process of its own, one computes at a time, in shuffled rounds, on a machine that is otherwise idle;
all but JoeyNMT, whose parameters are its own, start from the same weights and must find the same
loss. About ten minutes.

  python -m experiments.benchmarks.speed.training [--OPTION=VALUE ...]

Workloads: batch_64 and batch_16 (synthetic sentences of 25 tokens, vocabulary 8000), text
(Multi30k, English to German, with its real lengths: padding is wasted work), attention (additive
attention alone), transformer_64 and transformer_16 (against nn.Transformer), dot_product (that
attention alone, against the library's and PyTorch's fused one).
"""
LENGTH = 25
DOT_SHAPE = (2, 8, 512, 64)
TEXT_BATCH = 64
SAMPLED_BATCHES = 10
BUCKETS = 16
ATTENTION_SHAPE = (32, 64, 64, 512)


def make_workloads(setting: Setting) -> list[Workload]:
    """Prepares inputs and returns what is measured."""
    sizes = Sizes()
    folder = setting.workdir / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    common = {
        "kind": "train",
        "sizes": dataclasses.asdict(sizes),
        "parameters": str(folder / "parameters.npz"),
    }
    setting.prepare({**common, "kind": "parameters", "path": common["parameters"]})
    workloads = []
    for batch in (64, 16):
        data = folder / f"batch_{batch}.npz"
        Sentences.random(batch, LENGTH, LENGTH, sizes.vocabulary).save(data)
        workloads.append(synthetic({**common, "data": str(data), "batch": batch}))
    text = folder / "text.npz"
    if not text.exists():
        vocabulary = str(folder / "vocabulary")
        setting.prepare(
            {**common, "kind": "text", "path": str(text), "vocabulary_dir": vocabulary}
        )
    workloads.append(real_text({**common, "data": str(text), "batch": TEXT_BATCH}))
    return [
        *workloads,
        additive_attention(ATTENTION_SHAPE),
        *transformers(setting, folder, (64, 16)),
        dot_product(DOT_SHAPE),
    ]


def transformers(setting: Setting, folder: Path, batches: Sequence[int]) -> list[Workload]:
    """A step of the Transformer on sentences of equal length."""
    sizes, parameters = TransformerSizes(), folder / "transformer.npz"
    common = {
        "kind": "train",
        "sizes": dataclasses.asdict(sizes),
        "parameters": str(parameters),
        "batching": "whole",
    }
    setting.prepare({**common, "kind": "parameters", "path": str(parameters)})
    workloads = []
    for batch in batches:
        data = folder / f"batch_{batch}.npz"
        Sentences.random(batch, LENGTH, LENGTH, sizes.vocabulary).save(data)
        task = {**common, "data": str(data), "batch": batch}
        workload = Workload(
            name=f"transformer_{batch}",
            title=(
                f"Training step of a Transformer, {sizes.layers} + {sizes.layers} layers of depth "
                f"{sizes.depth}, {batch} sentences of {LENGTH} and {LENGTH} tokens"
            ),
            unit="target tokens",
            sides=[
                Side("attention_jax", PROJECT, task),
                Side("nn.Transformer", TORCH, {**task, "compiled": False}),
                Side("torch.compile", TORCH, {**task, "compiled": True}),
            ],
        )
        workloads.append(workload)
    return workloads


def dot_product(shape: tuple[int, int, int, int]) -> Workload:
    """Dot-product attention with the gradients by queries, keys and values."""
    task = {"kind": "attention", "score": "dot", "shape": shape}
    batch, heads, length, depth = shape
    return Workload(
        name="dot_product",
        title=(
            f"Dot-product attention alone, forward and backward: {batch} sequences of {length}, "
            f"{heads} heads of depth {depth}"
        ),
        unit="calls",
        sides=[
            Side("attention_jax", PROJECT, {**task, "naive": False}),
            Side("jax.nn.dot_product_attention", PROJECT, {**task, "naive": True}),
            Side("PyTorch, fused", TORCH, task),
        ],
    )


def synthetic(common: Mapping[str, Any]) -> Workload:
    """A step on sentences of equal length."""
    task, batch = {**common, "batching": "whole"}, common["batch"]
    return Workload(
        name=f"batch_{batch}",
        title=f"Training step, {batch} sentences of {LENGTH} and {LENGTH} tokens",
        unit="target tokens",
        sides=[
            Side("attention_jax", PROJECT, task),
            Side("PyTorch", TORCH, {**task, "compiled": False}),
            Side("torch.compile", TORCH, {**task, "compiled": True}),
            Side("JoeyNMT", JOEYNMT, task),
        ],
    )


def real_text(common: Mapping[str, Any]) -> Workload:
    """Steps on an even sample of an epoch's batches, each side with batches of its own making."""
    task = {**common, "count": SAMPLED_BATCHES}
    by_length, at_random = {**task, "batching": "sorted"}, {**task, "batching": "random"}
    return Workload(
        name="text",
        title=f"Training on Multi30k en-de, batches of {common['batch']}, real tokens only",
        unit="target tokens",
        sides=[
            Side("attention_jax", PROJECT, {**task, "batching": "buckets", "buckets": BUCKETS}),
            Side("PyTorch, random batches", TORCH, {**at_random, "compiled": False}),
            Side("PyTorch, sorted batches", TORCH, {**by_length, "compiled": False}),
            Side("torch.compile, sorted batches", TORCH, {**by_length, "compiled": True}),
            Side("JoeyNMT, random batches", JOEYNMT, at_random),
        ],
        conditions=Conditions(rounds=5),
    )


def additive_attention(shape: tuple[int, int, int, int]) -> Workload:
    """The attention function with the gradients by all that goes into it."""
    batch, queries, slots, depth = shape
    task = {"kind": "attention", "score": "additive", "shape": shape}
    return Workload(
        name="attention",
        title=(
            f"Additive attention alone, forward and backward: {batch} x {queries} queries, "
            f"{slots} slots, depth {depth}"
        ),
        unit="calls",
        sides=[
            Side("attention_jax", PROJECT, {**task, "naive": False}),
            Side("the equation in JAX", PROJECT, {**task, "naive": True}),
            Side("PyTorch", TORCH, {**task, "compiled": False}),
            Side("torch.compile", TORCH, {**task, "compiled": True}),
        ],
    )


if __name__ == "__main__":
    page = functools.partial(report.page, "Training speed")
    program.run("training", USAGE, make_workloads, page)
