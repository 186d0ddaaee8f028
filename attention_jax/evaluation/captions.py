"""Scores of captions: BLEU of each order, chrF and exact match, against one or more references."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.bleu import ORDER, bleu_from_statistics, bleu_statistics
from attention_jax.evaluation.chrf import chrf_from_statistics, chrf_statistics
from attention_jax.evaluation.error_rates import check_parallel


class CaptionStatistics(NamedTuple):
    """Sufficient statistics of each caption; rows may be summed.

    Attributes:
      bleu: Those of `evaluation.bleu`.
      chrf: Those of `evaluation.chrf`.
      exact: Whether the caption is one of its references, 0, and 1.
    """

    bleu: Float[np.ndarray, "N F"]
    chrf: Float[np.ndarray, "N G"]
    exact: Float[np.ndarray, "N 3"]


def caption_statistics(
    captions: Sequence[str], references: Sequence[Sequence[str]], *, tokenize: str = "13a"
) -> CaptionStatistics:
    """Counts what `caption_scores` needs of each caption.

    Args:
      captions: One for each picture.
      references: The references of each, in any number.
      tokenize: A tokenizer of sacrebleu.

    Raises:
      ValueError: If the lists are empty or of unequal length, or a picture has no reference.
    """
    check_parallel(captions, references)
    pairs = zip(captions, references, strict=True)
    right = np.array([caption in known for caption, known in pairs], np.float64)
    return CaptionStatistics(
        bleu_statistics(captions, references, tokenize=tokenize),
        chrf_statistics(captions, references),
        np.stack([right, np.zeros_like(right), np.ones_like(right)], axis=-1),
    )


def caption_scores(
    captions: Sequence[str], references: Sequence[Sequence[str]], *, tokenize: str = "13a"
) -> dict[str, float]:
    """BLEU-1 to BLEU-4, chrF and exact match, each from 0 to 100.

      BLEU-n = 100 min(1, exp(1 - r/c)) (p_1 ... p_n)^(1/n)

    Args:
      captions: One for each picture.
      references: The references of each, in any number.
      tokenize: A tokenizer of sacrebleu.

    Returns:
      `bleu_1` to `bleu_4`, `chrf` and `exact_match`.

    Raises:
      ValueError: As `caption_statistics`.

    Source:
      Xu et al. (2015), table 1, reports the BLEU of each order.
    """
    rows = caption_statistics(captions, references, tokenize=tokenize)
    bleu, chrf, exact = (part.sum(axis=0) for part in rows)
    scores = {
        f"bleu_{order}": float(bleu_from_statistics(bleu, order)) for order in range(1, ORDER + 1)
    }
    return {
        **scores,
        "chrf": float(chrf_from_statistics(chrf)),
        "exact_match": float(100 * exact[0] / exact[-1]),
    }
