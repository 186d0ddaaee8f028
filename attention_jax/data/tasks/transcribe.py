"""Speech recognition: what is said in a recording, measured by word and character error rates."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from attention_jax.data.config import DataConfig
from attention_jax.data.decoded import DecodedSplit, Scores
from attention_jax.data.examples import Examples, Split
from attention_jax.data.field import TARGET
from attention_jax.data.pictures import Canvas
from attention_jax.data.sound.filter_banks import seconds_before
from attention_jax.data.sound.recording import FRAMES, STARTS
from attention_jax.data.sound.spectrogram import spectrogram
from attention_jax.data.task import Metric, Statistics, Task
from attention_jax.data.tasks.translate import attention_scores
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.data.transcription import recordings_at
from attention_jax.evaluation.attention_alignment import linking_weights
from attention_jax.evaluation.time_warping import (
    start_scores,
    token_starts,
    word_starts_in_tokens,
)
from attention_jax.evaluation.transcription import (
    error_rate,
    share_wrong,
    transcription_counts,
    transcription_scores,
)


def read_files(texts: Sequence[str], data_config: DataConfig) -> Mapping[str, Sequence[Any]]:
    """Returns the recordings in the files that lines of text name.

    Raises:
      DataError: If one is missing, or no sound.
    """
    return {FRAMES.name: recordings_at(texts, data_config.sample_rate)}


def scores(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Scores:
    """Computes the error rates of words, of characters and of whole transcripts."""
    return dict(transcription_scores(outputs, split.references))


def timing_scores(decoded: DecodedSplit) -> Scores:
    """Computes what the attention of the best outputs is like, and what it tells of times.

    When words begin is compared with the data, where these know it, in outputs that have the right
    words.
    """
    found = attention_scores(decoded)
    found.pop("attention_eos_mass", None)  # the last frame is no boundary
    split = decoded.split
    if not decoded.attends or STARTS not in split.extras:
        return found
    pairs = [
        (_starts_in(decoded, one[0]), gold)
        for one, reference, gold in zip(
            decoded.hypotheses, split.target_ids, split.extras[STARTS], strict=True
        )
        if one and np.array_equal(one[0].tokens, reference)
    ]
    return {**found, **start_scores([f for f, _ in pairs], [g for _, g in pairs])}


def _starts_in(decoded: DecodedSplit, best: Any) -> Float[np.ndarray, " _"]:
    vocabulary = decoded.split.target_vocabulary
    weights = linking_weights(best.weights, decoded.alignment_shift)
    return word_starts(vocabulary, vocabulary.tokens(best.tokens), weights)


def word_starts(
    vocabulary: Vocabulary, tokens: Sequence[str], weights: Float[np.ndarray, "T N"]
) -> Float[np.ndarray, " _"]:
    """Returns when each word of an output begins, in seconds, by dynamic time warping.

    Args:
      vocabulary: That of the outputs.
      tokens: The T tokens of one, EOS last.
      weights: The attention to frames that links each.
    """
    are_words = vocabulary.kind != "characters"
    places = word_starts_in_tokens(tokens[:-1], are_words=are_words)
    # The attention of EOS has a part in the path: the last word ends before it.
    return seconds_before(token_starts(np.asarray(weights))[places])


def canvas(examples: Examples, index: int, data_config: DataConfig) -> Canvas:
    """Returns the spectrogram, on which attention to sound is drawn."""
    starts = examples.extras.get(STARTS)
    recording = examples.columns[FRAMES.name][index]
    return spectrogram(recording, None if starts is None else starts[index])


def statistics(split: Split, outputs: Sequence[str], data_config: DataConfig) -> Statistics:
    """Returns the errors in each transcript, and the rates of their sums."""
    words, characters = transcription_counts(outputs, split.references)
    return {
        "wer": (words, error_rate),
        "cer": (characters, error_rate),
        "sentence_error": (words, share_wrong),
    }


_PANEL = "error rate (%)"
TASK = Task(
    label="transcription",
    fields=(FRAMES, TARGET),
    read=read_files,
    canvas=canvas,
    word_starts=word_starts,
    scores=scores,
    details=(timing_scores,),
    statistics=statistics,
    metrics=(
        Metric("wer", "WER", _PANEL, "min"),
        Metric("cer", "CER", _PANEL, "min"),
        Metric("sentence_error", "sentence errors", _PANEL, "min"),
    ),
    printed=("wer", "cer"),
    shown=("wer", "cer", "sentence_error", "word_start_error", "word_starts_near"),
)
