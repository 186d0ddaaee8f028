"""Beam search in eager PyTorch: batched, with the decoder's state kept from step to step."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from experiments.speed.torch_model import Seq2Seq, TorchBatch, TorchMemory, additive_attention
from experiments.speed.workloads import BOS, EOS, PAD

_IMPOSSIBLE = float("-inf")


class Found(NamedTuple):
    """Ended hypotheses, best first: `B K L`, EOS included, and `B K`."""

    tokens: Tensor
    log_probs: Tensor


@torch.inference_mode()
def beam_search(
    model: Seq2Seq, batch: TorchBatch, width: int, shortest: int, longest: int
) -> Found:
    """Searches hypotheses of `shortest` to `longest` tokens, EOS included.

    A continuation by EOS ends a hypothesis if it is among the `width` best; the best others live
    on. Scores are log-probabilities divided by the length.
    """
    memory, hidden = model.encode(batch)
    size = len(batch.source)
    rows = torch.arange(size).unsqueeze(1)
    hidden = hidden.unsqueeze(1).expand(-1, width, -1)
    fed = torch.zeros_like(hidden)
    tokens = torch.full((size, width), BOS)
    live = torch.full((size, width), _IMPOSSIBLE)
    live[:, 0] = 0.0
    written = torch.full((size, width, longest), PAD)
    ended = Found(written.clone(), torch.full((size, width), _IMPOSSIBLE))
    ended_scores = ended.log_probs.clone()
    for position in range(longest):
        logits, hidden, fed = _step(model, memory, tokens, hidden, fed)
        log_probs = _allowed(functional.log_softmax(logits, -1), position, shortest, longest)
        vocabulary = logits.shape[-1]
        totals = (log_probs + live.unsqueeze(-1)).flatten(1)
        best, index = totals.topk(2 * width)
        parents, chosen = index // vocabulary, index % vocabulary
        beginnings = written[rows, parents]
        beginnings[:, :, position] = chosen
        is_end = chosen == EOS
        if position + 1 >= shortest:
            new = best.masked_fill(~is_end, _IMPOSSIBLE)[:, :width]
            log_probs = torch.cat([ended.log_probs, new], 1)
            merged = torch.cat([ended_scores, new / (position + 1)], 1)
            ended_scores, places = merged.topk(width)
            sequences = torch.cat([ended.tokens, beginnings[:, :width]], 1)
            ended = Found(sequences[rows, places], log_probs[rows, places])
            limit = best[:, :1] / longest
            if bool((ended_scores[:, -1:] >= limit).all()):
                break
        live, places = best.masked_fill(is_end, _IMPOSSIBLE).topk(width)
        written, tokens = beginnings[rows, places], chosen[rows, places]
        parents = parents[rows, places]
        hidden, fed = hidden[rows, parents], fed[rows, parents]
    return ended


def _step(
    model: Seq2Seq, memory: TorchMemory, tokens: Tensor, hidden: Tensor, fed: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Advances all beams `B K`; the memory is not repeated for them."""
    size, width = tokens.shape
    cell_input = torch.cat([model.target_embedding(tokens), fed], dim=-1)
    hidden = model.cell(cell_input.flatten(0, 1), hidden.flatten(0, 1)).view(size, width, -1)
    context = additive_attention(model.query(hidden), memory, model.energy)
    fed = torch.tanh(model.attentional(torch.cat([hidden, context], dim=-1)))
    return model.output(fed), hidden, fed


def _allowed(log_probs: Tensor, position: int, shortest: int, longest: int) -> Tensor:
    """Forbids what may not stand at a position."""
    log_probs[..., PAD] = log_probs[..., BOS] = _IMPOSSIBLE
    if position + 1 < shortest:
        log_probs[..., EOS] = _IMPOSSIBLE
    if position + 1 >= longest:
        end = log_probs[..., EOS].clone()
        log_probs[:] = _IMPOSSIBLE
        log_probs[..., EOS] = end
    return log_probs
