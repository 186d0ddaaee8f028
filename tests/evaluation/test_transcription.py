"""Word and character error rates of transcripts, by hand."""

import numpy as np
import pytest

from attention_jax.evaluation.transcription import (
    error_rate,
    transcription_counts,
    transcription_scores,
)

OUTPUTS = ["one two two", "four", "five six", ""]
REFERENCES = [["one two"], ["for"], ["five  six", "nine"], ["eight"]]


def test_rates_by_hand():
    """An insertion of 2 words, a substitution of 1, nothing of 2, and a deletion of 1."""
    scores = transcription_scores(OUTPUTS, REFERENCES)
    assert scores["wer"] == pytest.approx(100 * 3 / 6)
    assert scores["cer"] == pytest.approx(100 * (4 + 1 + 0 + 5) / (7 + 3 + 8 + 5))
    assert scores["sentence_error"] == 75.0


def test_more_errors_than_words_are_more_than_100_percent():
    assert transcription_scores(["a b c"], [["d"]])["wer"] == 300.0


def test_rates_are_those_of_summed_counts():
    words, characters = transcription_counts(OUTPUTS, REFERENCES)
    scores = transcription_scores(OUTPUTS, REFERENCES)
    assert error_rate(words.sum(0)) == scores["wer"]
    assert error_rate(characters.sum(0)) == scores["cer"]
    np.testing.assert_allclose(error_rate(words), [50.0, 100.0, 0.0, 100.0])
