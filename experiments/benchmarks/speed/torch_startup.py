"""PyTorch's start-up: a training on a text of words to its third step, a script as users write it.

The argument is a JSON object: `sizes`, `source` and `target` (files of a text, a sentence a line),
`batch`, `steps`, `threads` and `compiled`.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.benchmarks.speed.torch_model import Seq2Seq, torch_batch
from experiments.benchmarks.speed.torch_transformer import Transformer
from experiments.benchmarks.speed.torch_worker import training_work
from experiments.benchmarks.speed.workloads import (
    EOS,
    FIRST_WORD,
    UNK,
    Sentences,
    TransformerSizes,
    sizes_of,
)


def read_side(path: Path, vocabulary: int) -> list[list[int]]:
    """Reads a side of a text as ids of its most frequent words, each line with EOS."""
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    known = Counter(word for line in lines for word in line).most_common(vocabulary - FIRST_WORD)
    ids = {word: number for number, (word, _) in enumerate(known, start=FIRST_WORD)}
    return [[*(ids.get(word, UNK) for word in line), EOS] for line in lines]


def train(task: dict[str, Any]) -> None:
    """Trains, and says after every step that it has been made."""
    torch.set_flush_denormal(True)
    torch.set_num_threads(task["threads"])
    torch.manual_seed(0)
    sizes = sizes_of(task["sizes"])
    sides = (read_side(Path(task[name]), sizes.vocabulary) for name in ("source", "target"))
    sentences = Sentences.of_lists(*sides)
    model = (Transformer if isinstance(sizes, TransformerSizes) else Seq2Seq)(sizes)
    if isinstance(model, Seq2Seq):
        torch.nn.init.normal_(model.energy)
    loss_of = torch.compile(model) if task["compiled"] else model
    order = np.random.default_rng(0).permutation(len(sentences))
    for step in range(task["steps"]):
        rows = order[step * task["batch"] : (step + 1) * task["batch"]]
        # A trainer for each batch would lose Adam's moments: of so few steps none is repeated.
        training_work(model, loss_of, [torch_batch(sentences.batch(rows))])()
        print(f"step {step + 1}/{task['steps']}", flush=True)


if __name__ == "__main__":
    train(json.loads(sys.argv[1]))
