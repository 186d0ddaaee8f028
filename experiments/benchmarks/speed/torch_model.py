"""The recurrent model of the comparison, as somebody who knows PyTorch well writes it.

Fused bidirectional `nn.GRU` over packed sentences, keys projected once for a source, a `GRUCell`
with input feeding, and all logits in one product after the loop.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from experiments.benchmarks.speed.workloads import BOS, PAD, Sentences, Sizes


class TorchBatch(NamedTuple):
    """A batch as tensors; `source_lengths` and `source_mask` are None where nothing is padded."""

    source: Tensor
    source_lengths: Tensor | None
    source_mask: Tensor | None
    target: Tensor


class TorchMemory(NamedTuple):
    """What is attended to: `B S A`, `B S 2H`, and `B S` or None."""

    keys: Tensor
    values: Tensor
    mask: Tensor | None


def torch_batch(sentences: Sentences) -> TorchBatch:
    """Turns sentences into tensors on the default device."""
    source = torch.as_tensor(sentences.source.astype(np.int64))
    target = torch.as_tensor(sentences.target.astype(np.int64))
    lengths = torch.from_numpy(sentences.source_lengths)  # which packing wants on the CPU
    if bool((lengths == source.shape[1]).all()):
        return TorchBatch(source, None, None, target)
    return TorchBatch(source, lengths, source != PAD, target)


def additive_attention(query: Tensor, memory: TorchMemory, energy: Tensor) -> Tensor:
    """Returns the contexts `B T 2H` of projected queries `B T A`; `energy` is `A`."""
    hidden = torch.tanh(query.unsqueeze(2) + memory.keys.unsqueeze(1))  # B T 1 A + B 1 S A
    scores = hidden @ energy
    if memory.mask is not None:
        scores = scores.masked_fill(~memory.mask.unsqueeze(1), float("-inf"))
    return functional.softmax(scores, dim=-1) @ memory.values


class Seq2Seq(nn.Module):
    """Bidirectional GRU encoder, additive attention, GRU decoder with input feeding."""

    def __init__(self, sizes: Sizes):
        """Declares the layers; `load_parameters` fills them."""
        super().__init__()
        vocabulary, embedding, hidden = sizes.vocabulary, sizes.embedding, sizes.hidden
        self.source_embedding = nn.Embedding(vocabulary, embedding)
        self.target_embedding = nn.Embedding(vocabulary, embedding)
        self.encoder = nn.GRU(embedding, hidden, bidirectional=True, batch_first=True)
        self.bridge = nn.Linear(2 * hidden, hidden)
        self.cell = nn.GRUCell(embedding + hidden, hidden)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(2 * hidden, hidden, bias=False)
        self.energy = nn.Parameter(torch.empty(hidden))
        self.attentional = nn.Linear(3 * hidden, hidden, bias=False)
        self.output = nn.Linear(hidden, vocabulary)

    def encode(self, batch: TorchBatch) -> tuple[TorchMemory, Tensor]:
        """Returns the memory and the decoder's first hidden state."""
        embedded = self.source_embedding(batch.source)
        if batch.source_lengths is None:
            values, final = self.encoder(embedded)
        else:
            packed = pack_padded_sequence(
                embedded, batch.source_lengths, batch_first=True, enforce_sorted=False
            )
            outputs, final = self.encoder(packed)
            values, _ = pad_packed_sequence(
                outputs, batch_first=True, total_length=batch.source.shape[1]
            )
        hidden = torch.tanh(self.bridge(torch.cat([final[0], final[1]], dim=-1)))
        return TorchMemory(self.key(values), values, batch.source_mask), hidden

    def step(
        self, embedded: Tensor, hidden: Tensor, fed: Tensor, memory: TorchMemory
    ) -> tuple[Tensor, Tensor]:
        """Advances the decoder; returns the hidden and the attentional state, `B H`."""
        hidden = self.cell(torch.cat([embedded, fed], dim=-1), hidden)
        query = self.query(hidden).unsqueeze(1)
        context = additive_attention(query, memory, self.energy).squeeze(1)
        return hidden, torch.tanh(self.attentional(torch.cat([hidden, context], dim=-1)))

    def head(self, states: Tensor, target: Tensor) -> Tensor:
        """Returns the mean cross-entropy of the real target tokens."""
        logits = self.output(states)
        return functional.cross_entropy(
            logits.flatten(0, 1), target.flatten(), ignore_index=PAD
        )

    def forward(self, batch: TorchBatch) -> Tensor:
        """Returns the loss of a batch."""
        memory, hidden = self.encode(batch)
        fed_tokens = functional.pad(batch.target[:, :-1], (1, 0), value=BOS)
        embedded = self.target_embedding(fed_tokens)
        fed = torch.zeros_like(hidden)
        states = []
        for position in range(embedded.shape[1]):
            hidden, fed = self.step(embedded[:, position], hidden, fed, memory)
            states.append(fed)
        return self.head(torch.stack(states, dim=1), batch.target)

    def start(
        self, batch: TorchBatch, width: int, longest: int
    ) -> tuple[TorchMemory, tuple[Tensor, Tensor]]:
        """Returns the memory, which beams share, and the first state of `width` beams."""
        memory, hidden = self.encode(batch)
        hidden = hidden.unsqueeze(1).expand(-1, width, -1)
        return memory, (hidden, torch.zeros_like(hidden))

    def advance(
        self, memory: TorchMemory, tokens: Tensor, state: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """Feeds one token to all beams `B K`; returns the logits and the new state."""
        (size, width), (hidden, fed) = tokens.shape, state
        cell_input = torch.cat([self.target_embedding(tokens), fed], dim=-1)
        hidden = self.cell(cell_input.flatten(0, 1), hidden.flatten(0, 1)).view(size, width, -1)
        context = additive_attention(self.query(hidden), memory, self.energy)
        fed = torch.tanh(self.attentional(torch.cat([hidden, context], dim=-1)))
        return self.output(fed), (hidden, fed)

    def follow(
        self, state: tuple[Tensor, Tensor], rows: Tensor, parents: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Takes the state of the hypotheses that go on."""
        hidden, fed = state
        return hidden[rows, parents], fed[rows, parents]


def load_parameters(model: Seq2Seq, path: Path) -> None:
    """Fills the model from a file that `project_worker.save_parameters` wrote."""
    with np.load(path) as file:
        arrays = {name: torch.as_tensor(file[name]) for name in file.files}
    state = {
        "source_embedding.weight": arrays["source_embedding"],
        "target_embedding.weight": arrays["target_embedding"],
        "bridge.weight": arrays["bridge"].T,
        "bridge.bias": arrays["bridge_bias"],
        "query.weight": arrays["query"].T,
        "key.weight": arrays["key"].T,
        "energy": arrays["energy"],
        "attentional.weight": arrays["attentional"].T,
        "output.weight": arrays["output"],
        "output.bias": arrays["output_bias"],
    }
    for cell, prefix, suffix in (
        ("forward", "encoder", "_l0"),
        ("backward", "encoder", "_l0_reverse"),
        ("decoder", "cell", ""),
    ):
        state |= _gru_state(arrays, cell, prefix, suffix)
    model.load_state_dict(state)


def _gru_state(
    arrays: Mapping[str, Tensor], cell: str, prefix: str, suffix: str
) -> dict[str, Tensor]:
    """Returns the entries of a GRU; PyTorch's second bias is zero but for the candidate's part."""
    candidate = arrays[f"{cell}_candidate_bias"]
    zeros = candidate.new_zeros(2 * len(candidate))
    return {
        f"{prefix}.weight_ih{suffix}": arrays[f"{cell}_input"].T,
        f"{prefix}.weight_hh{suffix}": arrays[f"{cell}_recurrent"].T,
        f"{prefix}.bias_ih{suffix}": arrays[f"{cell}_bias"],
        f"{prefix}.bias_hh{suffix}": torch.cat([zeros, candidate]),
    }
