"""Speech recognition: the fields of its batches, and how transcripts are judged."""

import dataclasses

import numpy as np
import pytest

from attention_jax.data.builders.tones import Config
from attention_jax.data.decoded import DecodedSplit
from attention_jax.data.loading import build_task
from attention_jax.data.tasks import transcribe
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.decoding.searcher import Hypothesis
from attention_jax.types import SpecialIds

CONFIG = Config(spelling="words")


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return build_task(CONFIG, tmp_path_factory.mktemp("vocab"))


def test_frames_stand_in_place_of_token_ids(task):
    test = task.split("test")
    assert task.task is transcribe.TASK and not task.task.fields[0].is_text
    assert test.input_names == ["source", "source_mask"]
    assert np.shape(test.columns["source"][0])[1] == 40
    assert task.target_vocabulary.size == SpecialIds.COUNT + 10
    assert test.target_ids[0][-1] == SpecialIds.EOS


def test_scores_and_statistics_agree(task):
    split = task.split("test").select([0, 1, 2])
    outputs = [split.targets[0], "one " + split.targets[1], ""]
    scores = transcribe.scores(split, outputs, CONFIG)
    assert scores["wer"] > 0 and scores["sentence_error"] == pytest.approx(200 / 3)
    for name, (rows, score) in transcribe.statistics(split, outputs, CONFIG).items():
        assert float(score(rows.sum(axis=0))) == pytest.approx(scores[name])
        assert len(rows) == 3


@pytest.mark.parametrize(("kind", "expected"), [("words", [0.0, 0.0175]), ("characters", [0.0])])
def test_a_word_of_one_letter_is_a_word(task, kind, expected):
    vocabulary = SymbolVocabulary(kind, ["I"])
    tokens = vocabulary.tokens([SpecialIds.COUNT, SpecialIds.COUNT, SpecialIds.EOS])
    found = transcribe.word_starts(vocabulary, tokens, np.eye(3, dtype=np.float32))
    np.testing.assert_allclose(found, expected)


def test_times_of_words_are_those_of_the_step_that_links(task):
    """In a run whose words are linked when they are read, the row of each is the next one."""
    split = task.split("test").select(range(3))

    def scores(turn, shift):
        found = []
        for ids, frames in zip(split.target_ids, split.columns["source"], strict=True):
            weights = np.zeros((len(ids), len(frames)))
            for place in range(len(ids) - 1):  # evenly over the recording; the end has none
                weights[place, place * len(frames) // len(ids)] = 1.0
            found.append([Hypothesis(ids, 0.0, 0.0, np.roll(weights, turn, axis=0))])
        decoded = DecodedSplit(split, CONFIG, split.targets, (), found, True, shift)
        return transcribe.timing_scores(decoded)

    expected = scores(0, 0)
    assert "word_start_error" in expected and scores(1, 1) == pytest.approx(expected)
    assert scores(1, 0) != pytest.approx(expected)


def test_attention_is_drawn_on_spectrograms(task):
    split = task.split("test").select([3])
    canvas = transcribe.canvas(split, 0, CONFIG)
    frames = len(split.columns["source"][0])
    assert canvas.pixels.shape == (40, frames, 3) and len(canvas.places) == frames
    assert canvas.starts == split.extras["word_starts"][0].tolist()
    unmarked = dataclasses.replace(split, extras={"source": split.columns["source"]})
    assert transcribe.canvas(unmarked, 0, CONFIG).starts == ()
