"""Beam search in eager PyTorch: batched, with the decoder's state kept from step to step."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from experiments.speed.torch_model import Seq2Seq, TorchBatch
from experiments.speed.torch_transformer import Transformer
from experiments.speed.workloads import BOS, EOS, PAD

_IMPOSSIBLE = float("-inf")


class Found(NamedTuple):
    """Ended hypotheses, best first: `B K L`, EOS included, and `B K`."""

    tokens: Tensor
    log_probs: Tensor


@torch.inference_mode()
def beam_search(
    model: Seq2Seq | Transformer, batch: TorchBatch, width: int, shortest: int, longest: int
) -> Found:
    """Searches hypotheses of `shortest` to `longest` tokens, EOS included.

    A continuation by EOS ends a hypothesis if it is among the `width` best; the best others live
    on. Scores are log-probabilities divided by the length.
    """
    size = len(batch.source)
    rows = torch.arange(size).unsqueeze(1)
    memory, state = model.start(batch, width, longest)
    tokens = torch.full((size, width), BOS)
    live = torch.full((size, width), _IMPOSSIBLE)
    live[:, 0] = 0.0
    written = torch.full((size, width, longest), PAD)
    ended = Found(written.clone(), torch.full((size, width), _IMPOSSIBLE))
    ended_scores = ended.log_probs.clone()
    for position in range(longest):
        logits, state = model.advance(memory, tokens, state)
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
        state = model.follow(state, rows, parents)
    return ended


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
