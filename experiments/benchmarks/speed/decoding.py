"""Measures beam search beside PyTorch, torch.compile, JoeyNMT and CTranslate2; see `USAGE`."""

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.benchmarks.speed import program, report
from experiments.benchmarks.speed.benchmark import (
    CTRANSLATE2,
    JOEYNMT,
    PROJECT,
    TORCH,
    Setting,
    Side,
    Workload,
)
from experiments.benchmarks.speed.workloads import Sentences, Sizes, TransformerSizes

USAGE = """
Measures how fast beam search is, with 5 beams, sources of 25 tokens and outputs of as many: this
project beside a PyTorch beam that keeps the decoder's state, eager and with its step under
torch.compile, JoeyNMT's, and CTranslate2 with the project's weights. They take turns as in
`experiments.benchmarks.speed.training`, and all but JoeyNMT, int8 and shortlists must find
hypotheses of the same probability, but for as many as one sentence of 64 has, as a beam may have
dropped another of two that nearly tie. About twenty minutes.

  python -m experiments.benchmarks.speed.decoding [--OPTION=VALUE ...]

Workloads: beam_16 and beam_64 (sentences decoded together) of the recurrent model; transformer_16
and transformer_64, beside PyTorch with cached keys and values and CTranslate2 (which writes a word
in the last step, where the others write EOS); transformer_ending_16 and transformer_ending_64,
where outputs may have 60 tokens (twice the source and 10, as searches have it by default) and end
after 25 by themselves, as they do in use: a cache of the full length would be mostly empty (and
CTranslate2, which normalises after it has forbidden an early end, finds other outputs of this
length, so that it is held to the probability that it gives to the project's); shortlist_1,
shortlist_16 and shortlist_64, where a Transformer of 32,000 tokens writes with shortlists of them.
beam_int8_16, beam_int8_64, transformer_int8_16 and transformer_int8_64 have `search.dtype=int8`
beside float32, and the Transformer beside CTranslate2's int8.
"""
LENGTH = 25
LONGEST = 2 * LENGTH + 10  # what searches allow by default for such a source
WIDTH = 5
# Of the log-probabilities of all hypotheses: as many as one sentence of 64 has. On a processor
# where PyTorch's float32 search lost those of one, its float64 search found what is found here.
NEAR_TIES = 1 / 64
# Added to the logit of EOS: outputs of a model with random weights end as soon as they may. Taken
# from it where they all have the same length, so that no search has a use for an earlier end.
END_BIAS = 15.0
LARGE, SHORTLISTS = 32_000, (2_000, 8_000)  # tokens of a vocabulary, and of shortlists


def make_workloads(setting: Setting) -> list[Workload]:
    """Prepares inputs and returns what is measured."""
    folder = setting.workdir / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    title = "Beam search of a Transformer"
    return [
        *beams(setting, folder, Sizes(), "beam", "Beam search"),
        *beams(setting, folder, TransformerSizes(), "transformer", title),
        *beams(setting, folder, TransformerSizes(), "transformer_ending", title, LONGEST),
        *quantized(folder, Sizes(), "beam", "Beam search"),
        *quantized(folder, TransformerSizes(), "transformer", title),
        *shortlists(setting, folder, TransformerSizes(vocabulary=LARGE)),
    ]


def beams(
    setting: Setting,
    folder: Path,
    sizes: Sizes | TransformerSizes,
    name: str,
    title: str,
    longest: int = LENGTH,
) -> list[Workload]:
    """Beam search of one model, for few and for many sentences at a time.

    Args:
      setting: Of the sitting.
      folder: Where inputs are written.
      sizes: Of the model.
      name: Beginning of the workloads' names.
      title: Beginning of their titles.
      longest: The most tokens of an output; all have `LENGTH`.
    """
    common = beam_task(folder, sizes, name, longest)
    setting.prepare({**common, "kind": "parameters", "path": common["parameters"]})
    room = f", of {longest} allowed" if longest > LENGTH else ""
    workloads = []
    for batch in (16, 64):
        data = folder / f"beam_{batch}.npz"
        Sentences.random(batch, LENGTH, LENGTH, sizes.vocabulary).save(data)
        task = {**common, "data": str(data)}
        is_recurrent = isinstance(sizes, Sizes)
        others = [Side("JoeyNMT", JOEYNMT, task)] if is_recurrent else converted(setting, task)
        workload = Workload(
            name=f"{name}_{batch}",
            title=f"{title}, {WIDTH} beams, {batch} sentences, {LENGTH} steps{room}",
            unit="sentences",
            sides=[
                Side("attention_jax", PROJECT, task),
                Side("PyTorch, eager", TORCH, {**task, "compiled": False}),
                Side("torch.compile", TORCH, {**task, "compiled": True}),
                *others,
            ],
            near_ties=NEAR_TIES,
        )
        workloads.append(workload)
    return workloads


def beam_task(
    folder: Path, sizes: Sizes | TransformerSizes, name: str, longest: int = LENGTH
) -> dict[str, Any]:
    """Returns what the searches of one model have in common; for the arguments see `beams`."""
    return {
        "kind": "beam",
        "sizes": dataclasses.asdict(sizes),
        "parameters": str(folder / f"{name}.npz"),
        "end_bias": END_BIAS if longest > LENGTH else -END_BIAS,
        "width": WIDTH,
        "shortest": LENGTH,
        "longest": longest,
    }


def converted(setting: Setting, task: Mapping[str, Any]) -> list[Side]:
    """CTranslate2 with the project's weights.

    Where outputs end by themselves it is given the project's, to say how probable they are.
    """
    if task["longest"] > LENGTH:
        hypotheses = task["data"].replace(".npz", "_ending.npy")
        setting.prepare({**task, "kind": "hypotheses", "path": hypotheses})
        task = {**task, "hypotheses": hypotheses}
    return [Side("CTranslate2, float32", CTRANSLATE2, {**task, "compute": "float32"})]


def quantized(
    folder: Path, sizes: Sizes | TransformerSizes, name: str, title: str
) -> list[Workload]:
    """Beam search in int8 beside float32, of the inputs that `beams` has written."""
    made = []
    for batch in (16, 64):
        task = {**beam_task(folder, sizes, name), "data": str(folder / f"beam_{batch}.npz")}
        peers = [Side("CTranslate2, int8", CTRANSLATE2, {**task, "compute": "int8"})]
        made.append(
            Workload(
                name=f"{name}_int8_{batch}",
                title=f"{title} in int8, {WIDTH} beams, {batch} sentences, {LENGTH} steps",
                unit="sentences",
                sides=[
                    Side("attention_jax, int8", PROJECT, {**task, "dtype": "int8"}),
                    Side("attention_jax, float32", PROJECT, {**task, "dtype": "float32"}),
                    *(peers if isinstance(sizes, TransformerSizes) else ()),
                ],
            )
        )
    return made


def shortlists(setting: Setting, folder: Path, sizes: TransformerSizes) -> list[Workload]:
    """Beam search of one model with its whole vocabulary and with shortlists of it."""
    made = []
    for batch in (1, 16, 64):
        data = folder / f"shortlist_{batch}.npz"
        Sentences.random(batch, LENGTH, LENGTH, sizes.vocabulary).save(data)
        task = {
            "kind": "beam", "sizes": dataclasses.asdict(sizes), "data": str(data), "end_bias": 0.0,
            "width": WIDTH, "shortest": LENGTH, "longest": LENGTH,
        }  # fmt: skip
        short = [
            Side(f"a shortlist of {size:,}", PROJECT, {**task, "shortlist": size})
            for size in SHORTLISTS
        ]
        title = f"Beam search with a shortlist, {WIDTH} beams, {batch} sentences, {LENGTH} steps"
        made.append(
            Workload(
                name=f"shortlist_{batch}",
                title=f"{title}, of {sizes.vocabulary:,} tokens",
                unit="sentences",
                sides=[Side("the whole vocabulary", PROJECT, task), *short],
            )
        )
    return made


if __name__ == "__main__":
    page = functools.partial(report.page, "Decoding speed")
    program.run("decoding", USAGE, make_workloads, page)
