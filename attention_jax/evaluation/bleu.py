"""BLEU from sufficient statistics of each sentence, which bootstrap resampling sums many times."""

import functools
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from sacrebleu.metrics import BLEU

from attention_jax.evaluation.unknown import scorable

ORDER = 4
FIELDS = 2 + 2 * ORDER
_BLOCK = 2**22  # draws that are converted to float64 at a time: 32 MiB


def bleu_statistics(
    hypotheses: Sequence[str],
    references: Sequence[Sequence[str]],
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Float[np.ndarray, "N F"]:
    """Sufficient statistics of BLEU: counts n-grams of each sentence; rows may be summed.

    Args:
      hypotheses: N detokenised outputs; for unknown words see `unknown`.
      references: The references of each of them, in any number.
      tokenize: A tokenizer of sacrebleu.
      lowercase: Whether case is ignored.

    Returns:
      Hypothesis length, length of the reference nearest in length, matching n-grams of order 1 to
      4, and all n-grams of the hypothesis of order 1 to 4.
    """
    # `effective_order` only silences a warning about scores of single sentences, which are unused.
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, effective_order=True)
    hypotheses = scorable(hypotheses, references)
    rows = np.zeros((len(hypotheses), FIELDS))
    for row, hypothesis, variants in zip(rows, hypotheses, references, strict=True):
        score = metric.sentence_score(hypothesis, list(variants))
        row[:] = [score.sys_len, score.ref_len, *score.counts, *score.totals]
    return rows


def bleu_from_statistics(
    statistics: Float[np.ndarray, "*R F"], order: int = ORDER
) -> Float[np.ndarray, "*R"]:
    """BLEU: computes the corpus score (0 to 100) from summed statistics, as sacrebleu does.

    BLEU = 100 * min(1, exp(1 - r/c)) * (p_1 p_2 p_3 p_4)^(1/4);   of a lower order, of fewer p

    The k-th order without a match counts as 2^-k matches (sacrebleu's `smooth:exp`).

    Source:
      Papineni et al. 2002, sec. 2.3; smoothing as in mteval-v13a.
    """
    length, reference_length = statistics[..., 0], statistics[..., 1]
    matches, totals = statistics[..., 2 : 2 + ORDER], statistics[..., 2 + ORDER :]
    matches, totals = matches[..., :order], totals[..., :order]
    missing = (matches == 0) & (totals > 0)
    # The running count over orders makes the first zero 1/2, the second 1/4, ...
    smoothed = np.where(missing, 0.5 ** np.cumsum(missing, axis=-1), matches)
    # Rows that divide by zero here are those that the last line sets to 0.
    with np.errstate(divide="ignore", invalid="ignore"):
        log_precisions = np.log(smoothed / totals).mean(axis=-1)
        brevity = np.minimum(0.0, 1 - reference_length / length)
        score = 100 * np.exp(brevity + log_precisions)
    scorable = (totals > 0).all(axis=-1) & (matches > 0).any(axis=-1)
    return np.where(scorable, score, 0.0)


def bleu_resamples(
    statistics: Float[np.ndarray, "N F"], resamples: int, seed: int
) -> Float[np.ndarray, "R F"]:
    """Bootstrap resampling: sums the statistics of N sentences drawn with replacement, R times.

    The draws depend on N and `seed` only, so two systems are scored on the same sentences.

    Source:
      Koehn 2004, Statistical Significance Tests for Machine Translation Evaluation, sec. 3.
    """
    # A resample is how often each sentence was drawn; its sums are then a matrix product, R N times
    # N F -> R F, in blocks because the counts are small integers and the product is in float64.
    times = _times_drawn(len(statistics), resamples, seed)
    blocks = np.array_split(times, max(1, times.size // _BLOCK))
    return np.concatenate([block.astype(np.float64) @ statistics for block in blocks])


@functools.lru_cache(maxsize=1)  # many systems are compared on the same sentences
def _times_drawn(number: int, resamples: int, seed: int) -> np.ndarray:
    """Returns how often every sentence is in every resample, `R N`."""
    rng, times = np.random.default_rng(seed), np.empty((resamples, number), np.uint16)
    for row in times:
        row[:] = np.bincount(rng.integers(number, size=number), minlength=number)
    return times
