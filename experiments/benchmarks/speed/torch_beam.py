"""Beam search in PyTorch: batched, with the decoder's state kept from step to step.

What one step computes is a function of its own, `continuations`, so that it can be compiled.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from experiments.benchmarks.speed.torch_model import Seq2Seq, TorchBatch
from experiments.benchmarks.speed.torch_transformer import Transformer
from experiments.benchmarks.speed.workloads import BOS, EOS, PAD

_IMPOSSIBLE = float("-inf")


class Found(NamedTuple):
    """Ended hypotheses, best first: `B K L`, EOS included, and `B K`."""

    tokens: Tensor
    log_probs: Tensor


@torch.inference_mode()
def beam_search(
    model: Seq2Seq | Transformer,
    batch: TorchBatch,
    width: int,
    shortest: int,
    longest: int,
    step: Callable[..., tuple[Tensor, Tensor, Any]] | None = None,
) -> Found:
    """Searches hypotheses of `shortest` to `longest` tokens, EOS included.

    A continuation by EOS ends a hypothesis if it is among the `width` best; the best others live
    on, until `width` have ended or none can become one of the best. Scores are log-probabilities
    divided by the length. `step` is `continuations`, or that compiled.
    """
    step = step or continuations
    size = len(batch.source)
    rows = torch.arange(size).unsqueeze(1)
    memory, state = model.start(batch, width, longest)
    tokens = torch.full((size, width), BOS)
    # Only the first beam is alive at the start: the others would be copies of it.
    live = torch.full((size, width), _IMPOSSIBLE)
    live[:, 0] = 0.0
    written = torch.full((size, width, longest), PAD)
    ended = Found(written.clone(), torch.full((size, width), _IMPOSSIBLE))
    ended_scores, number = ended.log_probs.clone(), torch.zeros(size, 1, dtype=torch.long)
    for position in range(longest):
        may_end, must_end = position + 1 >= shortest, position + 1 >= longest
        best, index, state = step(model, memory, tokens, state, live, may_end, must_end)
        vocabulary = model.output.out_features
        parents, chosen = index // vocabulary, index % vocabulary  # B 2K: of K V, beam and token
        beginnings = written[rows, parents]
        beginnings[:, :, position] = chosen
        is_end = chosen == EOS
        if may_end:
            new = best.masked_fill(~is_end, _IMPOSSIBLE)[:, :width]
            number += (new > _IMPOSSIBLE).sum(1, keepdim=True)
            log_probs = torch.cat([ended.log_probs, new], 1)
            merged = torch.cat([ended_scores, new / (position + 1)], 1)
            ended_scores, places = merged.topk(width)
            sequences = torch.cat([ended.tokens, beginnings[:, :width]], 1)
            ended = Found(sequences[rows, places], log_probs[rows, places])
        live, places = best.masked_fill(is_end, _IMPOSSIBLE).topk(width)
        if may_end:
            # Done: enough have ended, or the best live one could not pass the worst ended one, even
            # if it lost nothing more and were divided by the largest length.
            is_done = (number >= width) | (live[:, :1] / longest <= ended_scores[:, -1:])
            if bool(is_done.all()):
                break
            live = live.masked_fill(is_done, _IMPOSSIBLE)
        written, tokens = beginnings[rows, places], chosen[rows, places]
        parents = parents[rows, places]
        state = model.follow(state, rows, parents)
    return ended


def continuations(
    model: Seq2Seq | Transformer,
    memory: Any,
    tokens: Tensor,
    state: Any,
    live: Tensor,
    may_end: bool,
    must_end: bool,
) -> tuple[Tensor, Tensor, Any]:
    """Feeds one token to all beams and ranks what may follow.

    Args:
      model: What reads and writes.
      memory: What it attends to.
      tokens: `B K`.
      state: Of the decoder.
      live: Log-probabilities of the beginnings, `B K`.
      may_end: Whether EOS may stand here.
      must_end: Whether nothing else may.

    Returns:
      (best, index, state): log-probabilities of the 2 K best continuations of all beams, their
      places among all `K V`, and the new state.
    """
    logits, state = model.advance(memory, tokens, state)
    log_probs = _allowed(functional.log_softmax(logits, -1), may_end, must_end)
    # B K V -> B K*V -> B 2K: with 2 K there are K left to live on even if K of them end.
    best, index = (log_probs + live.unsqueeze(-1)).flatten(1).topk(2 * tokens.shape[1])
    return best, index, state


def _allowed(log_probs: Tensor, may_end: bool, must_end: bool) -> Tensor:
    """Forbids what may not stand at a position."""
    log_probs[..., PAD] = log_probs[..., BOS] = _IMPOSSIBLE
    if not may_end:
        log_probs[..., EOS] = _IMPOSSIBLE
    if must_end:
        end = log_probs[..., EOS].clone()
        log_probs[:] = _IMPOSSIBLE
        log_probs[..., EOS] = end
    return log_probs
