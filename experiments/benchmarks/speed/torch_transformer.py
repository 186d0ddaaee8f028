"""The Transformer of the comparison, of PyTorch's own layers, with a cached step for its beam.

Training uses `nn.TransformerEncoder` and `nn.TransformerDecoder`, which call PyTorch's fused
attention. These keep nothing from step to step, so that the beam calls the same layers' parts,
with keys and values of the past in one tensor for each layer.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from experiments.benchmarks.speed.torch_model import TorchBatch
from experiments.benchmarks.speed.workloads import BOS, PAD, TransformerSizes, sinusoids

_EPSILON = 1e-6


class Past(NamedTuple):
    """Keys and values of the positions so far, `N B K H L D`, for N layers; and how many."""

    keys: Tensor
    values: Tensor
    length: int


class Transformer(nn.Module):
    """Encoder and decoder with normalisation after each sublayer, sinusoidal positions."""

    def __init__(self, sizes: TransformerSizes):
        """Declares the layers; `load_transformer` fills them."""
        super().__init__()
        depth, layers = sizes.depth, sizes.layers
        options = dict(dropout=0.0, layer_norm_eps=_EPSILON, batch_first=True)
        shape = (depth, sizes.heads, sizes.width)
        encoder, decoder = (
            kind(*shape, **options)
            for kind in (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)
        )
        self.encoder = nn.TransformerEncoder(encoder, layers, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder, layers)
        self.source_embedding = nn.Embedding(sizes.vocabulary, depth)
        self.target_embedding = nn.Embedding(sizes.vocabulary, depth)
        self.output = nn.Linear(depth, sizes.vocabulary)
        self.register_buffer("codes", torch.as_tensor(sinusoids(512, depth)), persistent=False)
        self.heads = sizes.heads

    def encode(self, batch: TorchBatch) -> tuple[Tensor, Tensor | None]:
        """Returns the annotations and the mask of their padding."""
        padding = None if batch.source_mask is None else ~batch.source_mask
        placed = self._placed(self.source_embedding(batch.source), 0)
        return self.encoder(placed, src_key_padding_mask=padding), padding

    def forward(self, batch: TorchBatch) -> Tensor:
        """Returns the loss of a batch."""
        memory, padding = self.encode(batch)
        before = functional.pad(batch.target[:, :-1], (1, 0), value=BOS)
        length = before.shape[1]
        causal = torch.ones(length, length, dtype=torch.bool).triu(1)
        features = self.decoder(
            self._placed(self.target_embedding(before), 0),
            memory,
            tgt_mask=causal,
            tgt_is_causal=True,
            memory_key_padding_mask=padding,
        )
        logits = self.output(features)
        return functional.cross_entropy(
            logits.flatten(0, 1), batch.target.flatten(), ignore_index=PAD
        )

    def start(self, batch: TorchBatch, width: int, longest: int) -> tuple[list, Past]:
        """Returns keys and values of the source for each layer, and an empty past."""
        annotations, padding = self.encode(batch)
        allowed = None if padding is None else ~padding[:, None, None, None]
        memory = []
        for layer in self.decoder.layers:
            # PyTorch stacks the projections of queries, keys and values: rows 0-D, D-2D and 2D-3D.
            weight, bias = layer.multihead_attn.in_proj_weight, layer.multihead_attn.in_proj_bias
            depth = annotations.shape[-1]
            both = functional.linear(annotations, weight[depth:], bias[depth:])
            keys, values = (self._split(part)[:, None] for part in both.chunk(2, dim=-1))
            memory.append((keys, values, allowed))
        size, depth = annotations.shape[0], annotations.shape[-1]
        # The past has room for the longest output from the start, and is written in place.
        shape = (len(memory), size, width, self.heads, longest, depth // self.heads)
        return memory, Past(torch.zeros(shape), torch.zeros(shape), 0)

    def advance(self, memory: list, tokens: Tensor, past: Past) -> tuple[Tensor, Past]:
        """Feeds one token to all beams `B K`; returns the logits and the longer past."""
        place, end = past.length, past.length + 1
        x = self._placed(self.target_embedding(tokens)[..., None, :], place)
        for number, layer in enumerate(self.decoder.layers):
            attention = layer.self_attn
            projected = functional.linear(x, attention.in_proj_weight, attention.in_proj_bias)
            query, key, value = (self._split(part) for part in projected.chunk(3, dim=-1))
            past.keys[number, ..., place:end, :] = key
            past.values[number, ..., place:end, :] = value
            stored = (part[number, ..., :end, :] for part in (past.keys, past.values))
            context = _attend(query, *stored)
            x = layer.norm1(x + attention.out_proj(self._joined(context)))
            attention, (keys, values, allowed) = layer.multihead_attn, memory[number]
            depth = x.shape[-1]
            query = functional.linear(
                x, attention.in_proj_weight[:depth], attention.in_proj_bias[:depth]
            )
            context = self._over_beams(self._split(query), keys, values, allowed)
            x = layer.norm2(x + attention.out_proj(self._joined(context)))
            x = layer.norm3(x + layer.linear2(functional.relu(layer.linear1(x))))
        return self.output(x[..., 0, :]), past._replace(length=end)

    def follow(self, past: Past, rows: Tensor, parents: Tensor) -> Past:
        """Takes the past of the hypotheses that go on."""
        end = past.length  # what was not written yet need not move
        for stored in (past.keys, past.values):
            stored[..., :end, :] = stored[:, rows, parents, :, :end]
        return past

    def _over_beams(
        self, query: Tensor, keys: Tensor, values: Tensor, allowed: Tensor | None
    ) -> Tensor:
        """Attends to a source that the beams share: they are rows of one query matrix."""
        rows = query.squeeze(-2).transpose(1, 2)  # B H K D
        mask = None if allowed is None else allowed[:, 0]
        context = functional.scaled_dot_product_attention(rows, keys[:, 0], values[:, 0], mask)
        return context.transpose(1, 2).unsqueeze(-2)

    def _placed(self, embedded: Tensor, place: int) -> Tensor:
        length, depth = embedded.shape[-2:]
        return embedded * math.sqrt(depth) + self.codes[place : place + length]

    def _split(self, array: Tensor) -> Tensor:
        """From `*B T D` to `*B H T D/H`."""
        return array.unflatten(-1, (self.heads, -1)).transpose(-2, -3)

    def _joined(self, array: Tensor) -> Tensor:
        return array.transpose(-2, -3).flatten(-2)


def load_transformer(model: Transformer, path: Path) -> None:
    """Fills the model from a file that `project_worker.save_parameters` wrote."""
    with np.load(path) as file:
        arrays = {name: torch.as_tensor(file[name]) for name in file.files}
    with torch.no_grad():
        model.source_embedding.weight.copy_(arrays["source_embedding"])
        model.target_embedding.weight.copy_(arrays["target_embedding"])
        model.output.weight.copy_(arrays["output"])
        model.output.bias.copy_(arrays["output_bias"])
        for side in ("encoder", "decoder"):
            for number, layer in enumerate(getattr(model, side).layers):
                _fill(layer, arrays, f"{side}.layer_{number}.")


def _fill(layer: nn.Module, arrays: dict[str, Tensor], prefix: str) -> None:
    attentions, norms = {"self_attn": "self_attention"}, ["self_norm", "feed_forward_norm"]
    if hasattr(layer, "multihead_attn"):
        attentions["multihead_attn"] = "attention"
        norms.insert(1, "attention_norm")
    for theirs, ours in attentions.items():
        attention, place = getattr(layer, theirs), f"{prefix}{ours}."
        depth = attention.embed_dim
        kernels = [arrays[f"{place}{name}_projection"] for name in ("query", "key", "value")]
        # H D D/H -> H D/H D -> D D
        rows = [kernel.permute(0, 2, 1).reshape(depth, depth) for kernel in kernels]
        attention.in_proj_weight.copy_(torch.cat(rows))
        query, value = (arrays[f"{place}{name}_bias"].flatten() for name in ("query", "value"))
        # Softmax does not see a bias of the keys, so the project has none.
        attention.in_proj_bias.copy_(torch.cat([query, torch.zeros(depth), value]))
        attention.out_proj.weight.copy_(arrays[f"{place}output_kernel"].reshape(depth, depth).T)
        attention.out_proj.bias.copy_(arrays[f"{place}output_bias"])
    for number, ours in enumerate(norms, start=1):
        getattr(layer, f"norm{number}").weight.copy_(arrays[f"{prefix}{ours}.scale"])
        getattr(layer, f"norm{number}").bias.copy_(arrays[f"{prefix}{ours}.bias"])
    for theirs, ours in {"linear1": "hidden", "linear2": "output"}.items():
        getattr(layer, theirs).weight.copy_(arrays[f"{prefix}feed_forward.{ours}"].T)
        getattr(layer, theirs).bias.copy_(arrays[f"{prefix}feed_forward.{ours}_bias"])


def _attend(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Attends for all beams `B K` as rows of one batch, the form that PyTorch has a kernel for."""
    flat = (part.flatten(0, 1) for part in (query, keys, values))
    return functional.scaled_dot_product_attention(*flat).unflatten(0, query.shape[:2])
