"""JoeyNMT as a contender of the speed benchmark, a process whose task is one JSON argument.

The package's own model and search with the sizes of the comparison; its parameters are its own.
"""

import logging
import types
from collections.abc import Callable
from typing import Any

import torch
from joeynmt.model import build_model
from joeynmt.search import beam_search
from joeynmt.vocabulary import Vocabulary

from experiments.benchmarks.speed import workloads
from experiments.benchmarks.speed.joeynmt_config import model_config
from experiments.benchmarks.speed.torch_model import TorchBatch, torch_batch
from experiments.benchmarks.speed.torch_worker import make_batches, run, total_units, training_work


def build(sizes: workloads.Sizes) -> Any:
    """Builds JoeyNMT's recurrent model with additive attention and input feeding."""
    special = types.SimpleNamespace(
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        sep_token=None,
        unk_id=0,
        pad_id=1,
        bos_id=2,
        eos_id=3,
        lang_tags=[],
    )
    words = [f"w{number}" for number in range(sizes.vocabulary - workloads.FIRST_WORD)]
    sides = [Vocabulary(words, special) for _ in range(2)]
    logging.disable(logging.CRITICAL)
    model = build_model(model_config(sizes), *sides)
    model.loss_function = ("crossentropy", 0.0)
    return model


def their_ids(tokens: torch.Tensor) -> torch.Tensor:
    """Maps the special ids pad, bos, eos, unknown = 0, 1, 2, 3 to JoeyNMT's 1, 2, 3, 0."""
    return torch.where(tokens < workloads.FIRST_WORD, (tokens + 1) % 4, tokens)


def source_of(batch: TorchBatch) -> dict[str, torch.Tensor]:
    """Returns the arguments by which JoeyNMT takes a source."""
    source = batch.source
    lengths = batch.source_lengths
    if lengths is None:
        lengths = torch.full((len(source),), source.shape[1])
    return {
        "src": their_ids(source),
        "src_length": lengths,
        "src_mask": (source != workloads.PAD).unsqueeze(1),
    }


def train(task: dict[str, Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Trains on every batch once: forward, backward, Adam."""
    batches = make_batches(task)
    torch.manual_seed(0)
    model = build(workloads.Sizes(**task["sizes"]))

    def loss_of(batch: TorchBatch) -> torch.Tensor:
        fed = torch.nn.functional.pad(batch.target[:, :-1], (1, 0), value=workloads.BOS)
        real = batch.target != workloads.PAD
        total = model(
            return_type="loss",
            trg_input=their_ids(fed),
            trg=their_ids(batch.target),
            trg_mask=real.unsqueeze(1),
            **source_of(batch),
        )[0]
        return total / real.sum()

    # Its encoder packs a batch that is sorted by the length of the source.
    by_length = [batch.batch((-batch.source_lengths).argsort(kind="stable")) for batch in batches]
    work = training_work(model, loss_of, [torch_batch(batch) for batch in by_length])
    return work, {"units": total_units(batches)}


def beam(task: dict[str, Any]) -> tuple[Callable[[], Any], dict[str, Any]]:
    """Beam search for a batch of sentences, all of the same forced length."""
    sentences = workloads.Sentences.load(task["data"])
    torch.manual_seed(0)
    model = build(workloads.Sizes(**task["sizes"])).eval()
    source, length = source_of(torch_batch(sentences)), task["longest"]

    def work() -> None:
        with torch.inference_mode():
            output, hidden, _, _ = model(return_type="encode", **source)
            beam_search(
                model,
                task["width"],
                output,
                hidden,
                source["src_mask"],
                length,
                alpha=1.0,
                min_output_length=length,
            )

    return work, {"units": {"sentences": len(sentences)}}


if __name__ == "__main__":
    run({"train": train, "beam": beam})
