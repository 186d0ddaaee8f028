"""Word and character error rate of transcripts, as speech recognition counts them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from attention_jax.evaluation.error_rates import error_counts
from attention_jax.spaced_words import spaced_words


def transcription_scores(
    outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> dict[str, float]:
    """Word error rate: scores transcripts by their words, by their characters, and as a whole.

    wer = 100 * sum_n d(words of output_n, words of nearest_n) / sum_n |words of nearest_n|

    d counts insertions, deletions and substitutions, so that the rate may exceed 100.

    Args:
      outputs: One transcript for each recording.
      references: All accepted transcripts of each.

    Returns:
      `wer`, `cer` (the same of characters, single spaces among them) and `sentence_error`: the
      share of outputs that are not right as a whole. All in percent.

    Raises:
      ValueError: As `evaluation.error_rates.error_counts`.
    """
    words, characters = transcription_counts(outputs, references)
    return {
        "wer": float(error_rate(words.sum(axis=0))),
        "cer": float(error_rate(characters.sum(axis=0))),
        "sentence_error": float(share_wrong(words.sum(axis=0))),
    }


def transcription_counts(
    outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[Float[np.ndarray, "N 4"], Float[np.ndarray, "N 4"]]:
    """Sufficient statistics: counts the errors of each output, in words and in characters.

    Columns are those of `error_counts`.
    """
    found = [spaced_words(output) for output in outputs]
    accepted = [[spaced_words(text) for text in texts] for texts in references]
    words = error_counts(found, accepted)
    # Between two words there is one space, however it is written.
    spelled = [" ".join(each) for each in found]
    return words, error_counts(spelled, [[*map(" ".join, texts)] for texts in accepted])


def error_rate(counts: Float[np.ndarray, "*B 4"]) -> Float[np.ndarray, "*B"] | float:
    """Returns edits per symbol of the references, in percent, from sums of counts."""
    return 100 * counts[..., 0] / np.maximum(counts[..., 1], 1)


def share_wrong(counts: Float[np.ndarray, "*B 4"]) -> Float[np.ndarray, "*B"] | float:
    """Returns the share of outputs with any error, in percent, from sums of counts."""
    return 100 * counts[..., 2] / np.maximum(counts[..., 3], 1)
