"""Selected words: what is counted of a generator, and of attention at many shares."""

import types

import numpy as np
import pytest

from attention_jax.data.builders.smoke_documents import Config
from attention_jax.data.loading import build_task
from attention_jax.errors import DataError
from attention_jax.evaluation.rationales import rationale_scores, words_of
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.sweeps.kept_files import kept_arrays
from attention_jax.types import SpecialIds
from experiments.kit import selected_words


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    task = build_task(Config(), tmp_path_factory.mktemp("vocab"))
    return task.split("test").select(range(6))


def table(ids, values):
    """Returns values of words as a model gives them: a sentence a row, with padding."""
    found = np.zeros((ids.shape[0] + 1, ids.shape[1] + 2))
    found[: ids.shape[0], : ids.shape[1]][ids != SpecialIds.PAD] = values
    return found


@pytest.fixture
def recorded(split, tmp_path, monkeypatch):
    """Records what a model gives, and returns the finished run."""

    def finished(gathered, documents=split):
        task = types.SimpleNamespace(split=lambda name: documents)
        monkeypatch.setattr(selected_words, "task_of", lambda run: task)
        monkeypatch.setattr(selected_words, "gather_outputs", lambda *_: gathered)
        run = types.SimpleNamespace(
            directory=RunDirectory(tmp_path), task=types.SimpleNamespace(gathers=()), place="run"
        )
        selected_words.record(run)
        return types.SimpleNamespace(arrays=lambda name: kept_arrays(tmp_path / name, "counts"))

    return finished


def marked_words(split):
    """Returns which words of each document people have marked."""
    return [
        words_of(spans, int((ids != SpecialIds.PAD).sum()))
        for spans, ids in zip(split.extras["evidence"], split.columns["source"], strict=True)
    ]


def test_a_generator_that_selects_the_evidence_is_right(split, recorded):
    pairs = zip(split.columns["source"], marked_words(split), strict=True)
    run = recorded({"rationale": [table(ids, marked) for ids, marked in pairs]})
    found = selected_words.of_generator(run)
    assert found.counts.shape == (6, 11)
    assert found.scores["token_f1"] == found.scores["iou_f1"] == pytest.approx(100)
    assert found.score(found.counts.sum(axis=0)) == pytest.approx(100)


def test_attention_is_counted_at_any_share(split, recorded, numpy_rng):
    marked, sources = marked_words(split), split.columns["source"]
    weights = [numpy_rng.random(len(words)) for words in marked]
    run = recorded({
        "word_weights": [table(ids, one) for ids, one in zip(sources, weights, strict=True)],
        "sentence_weights": [np.ones(len(ids) + 1) for ids in sources],
    })  # fmt: skip
    at = {share: selected_words.of_weights(run, [share]).scores for share in (0, 30, 35, 40, 100)}
    best = [np.zeros(len(one), bool) for one in weights]
    for chosen, one in zip(best, weights, strict=True):
        chosen[np.argsort(-one)[: round(0.3 * len(one))]] = True
    assert at[30] == pytest.approx(rationale_scores(best, split.extras["evidence"]))
    assert at[0]["token_f1"] == 0.0 and at[100]["token_recall"] == pytest.approx(100)
    middle = (at[30]["token_f1"] + at[40]["token_f1"]) / 2
    assert at[35]["token_f1"] == pytest.approx(middle)
    both = selected_words.of_weights(run, [30, 40])  # two seeds of a generator
    assert both.scores["token_f1"] == pytest.approx(middle)
    spans = selected_words.of_weights(run, [30], "iou_f1")
    assert spans.score(spans.counts.sum(axis=0)) == pytest.approx(at[30]["iou_f1"])


def test_documents_without_evidence_are_one_line(split, recorded):
    unmarked = types.SimpleNamespace(extras={})
    with pytest.raises(DataError, match="^run: expected test documents with evidence marked, fou"):
        recorded({}, unmarked)
