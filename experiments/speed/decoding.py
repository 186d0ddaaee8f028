"""Measures beam search beside eager PyTorch and JoeyNMT; see `USAGE`."""

import dataclasses
from pathlib import Path

from experiments.speed import program
from experiments.speed.benchmark import JOEYNMT, PROJECT, TORCH, Setting, Side, Workload
from experiments.speed.workloads import Sentences, Sizes, TransformerSizes

USAGE = """
Measures how fast beam search is, with 5 beams and outputs of 25 tokens: this project beside an
eager PyTorch beam that keeps the decoder's state, and JoeyNMT's. They take turns as in
`experiments.speed.training`, and must find hypotheses of the same probability. About two minutes.

  python -m experiments.speed.decoding [--OPTION=VALUE ...]

Workloads: beam_16 and beam_64 (sentences decoded together) of the recurrent model; transformer_16
and transformer_64, beside PyTorch with cached keys and values.
"""
LENGTH = 25
WIDTH = 5


def make_workloads(setting: Setting) -> list[Workload]:
    """Prepares inputs and returns what is measured."""
    folder = setting.workdir / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    return [
        *beams(setting, folder, Sizes(), "beam", "Beam search"),
        *beams(setting, folder, TransformerSizes(), "transformer", "Beam search of a Transformer"),
    ]


def beams(
    setting: Setting, folder: Path, sizes: Sizes | TransformerSizes, name: str, title: str
) -> list[Workload]:
    """Beam search of one model, for few and for many sentences at a time."""
    parameters = folder / f"{name}.npz"
    common = {
        "kind": "beam",
        "sizes": dataclasses.asdict(sizes),
        "parameters": str(parameters),
        "width": WIDTH,
        "length": LENGTH,
    }
    setting.prepare({**common, "kind": "parameters", "path": str(parameters)})
    workloads = []
    for batch in (16, 64):
        data = folder / f"beam_{batch}.npz"
        Sentences.random(batch, LENGTH, LENGTH, sizes.vocabulary).save(data)
        task = {**common, "data": str(data)}
        workload = Workload(
            name=f"{name}_{batch}",
            title=f"{title}, {WIDTH} beams, {batch} sentences, {LENGTH} steps",
            unit="sentences",
            sides=[
                Side("attention_jax", PROJECT, task),
                Side("PyTorch", TORCH, task),
                *([Side("JoeyNMT", JOEYNMT, task)] if isinstance(sizes, Sizes) else []),
            ],
        )
        workloads.append(workload)
    return workloads


if __name__ == "__main__":
    program.run("decoding", "Decoding speed", USAGE, make_workloads)
