"""Outputs come back in the order of their sources, whatever batches they were searched in."""

import dataclasses
import types

import jax
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.data.builders.smoke import Config as SmokeConfig
from attention_jax.data.loading import build_task
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.data.text.vocabulary import SUBWORDS, SymbolVocabulary
from attention_jax.decoding.alignments import pharaoh_line, word_weights
from attention_jax.decoding.searcher import Hypothesis, Searcher, in_parts
from attention_jax.errors import ConfigError
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.models import MODELS, build_model
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds
from tests.search.reference import coverage_penalty
from tests.training.tiny import tiny_config


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """(task, model, parameters), untrained."""
    config = tiny_config()
    task = build_task(config.data, tmp_path_factory.mktemp("vocabulary"))
    model = build_model(config.model, task.source_vocabulary.size, task.target_vocabulary.size)
    return task, model, jax.jit(model.init)(jax.random.key(3))


def test_decoder_does_not_depend_on_batches(setting):
    task, model, params = setting
    split = task.split("test").select(range(20))
    decode = Searcher(model, SearchConfig(beam_size=2, num_hypotheses=2))
    one = decode(params, split, SmokeConfig(eval_batch_size=32))
    other = decode(params, split, SmokeConfig(eval_batch_size=3))
    for left, right in zip(one, other, strict=True):
        assert [h.tokens.tolist() for h in left] == [h.tokens.tolist() for h in right]
        np.testing.assert_allclose([h.score for h in left], [h.score for h in right], rtol=1e-4)


def test_long_sources_are_searched_few_at_a_time(setting, monkeypatch):
    """In parts of one shape, none of which is of fillers alone; what is found does not change."""
    task, model, params = setting
    split = task.split("test").select(range(10))
    data, config = SmokeConfig(eval_batch_size=16), SearchConfig(beam_size=2)
    (batch,) = make_eval_batches(split, data)
    indices = lambda: [part["index"].tolist() for part in in_parts([batch], config)]  # noqa: E731
    assert indices() == [batch["index"].tolist()]
    whole = Searcher(model, config)(params, split, data)

    length, most = batch["source"].shape[1], f"{in_parts.__module__}._MOST_WEIGHTS"
    monkeypatch.setattr(most, 3 * 2 * length * config.longest(length))
    assert indices() == batch["index"][:12].reshape(4, 3).tolist()
    found = Searcher(model, config)(params, split, data)
    for left, right in zip(whole, found, strict=True):
        assert [h.tokens.tolist() for h in left] == [h.tokens.tolist() for h in right]

    monkeypatch.setattr(most, 1)  # a row is searched however long it is
    assert indices() == batch["index"][:10].reshape(10, 1).tolist()


def transformer(task):
    values = {
        "target_embedding_dim": 8,
        "sources": {
            "source": {
                "input": {"name": "tokens", "embedding_dim": 8},
                "encoder": {"name": "self_attention", "num_layers": 1, "feed_forward_dim": 8},
            }
        },
        "attention": {"name": "multi_head", "num_heads": 2, "head_dim": 4},
        "decoder": {"name": "transformer", "num_layers": 1, "feed_forward_dim": 8},
    }
    config = typed(MODELS.config("encoder_decoder"), values, "config.model")
    return build_model(config, task.source_vocabulary.size, task.target_vocabulary.size)


def test_a_cache_has_room_for_usual_outputs_first(setting, monkeypatch):
    """And is made larger for those that need it; what is found does not depend on it."""
    task, recurrent, of_recurrent = setting
    split, data = task.split("test").select(range(6)), SmokeConfig()
    model, search = transformer(task), SearchConfig(beam_size=2)
    params = jax.jit(model.init)(jax.random.key(0))

    def found(model, params, usual):
        monkeypatch.setattr(f"{in_parts.__module__}.usual_length", lambda length: usual)
        decode = Searcher(model, search)
        outputs = decode(params, split, data)
        return outputs, decode._search._cache_size()

    (batch,) = make_eval_batches(split, data)
    longest = search.longest(batch["source"].shape[1])
    whole, compiled = found(model, params, longest)
    assert compiled == 1
    room = max(len(best.tokens) for (best,) in whole) // 2
    small, compiled = found(model, params, room)
    assert compiled > 1
    for (left,), (right,) in zip(whole, small, strict=True):
        assert left.tokens.tolist() == right.tokens.tolist()
        np.testing.assert_allclose(left.weights, right.weights, rtol=1e-4, atol=1e-6)
    _, compiled = found(recurrent, of_recurrent, room)
    assert compiled == 1  # nothing there is larger for longer outputs


def test_decoder_returns_attention_without_padding(setting):
    task, model, params = setting
    split = task.split("test").select(range(5))
    found = Searcher(model, SearchConfig(beam_size=2))(params, split, SmokeConfig())
    for source, (best,) in zip(split.source_ids, found, strict=True):
        assert best.weights.shape == (len(best.tokens), len(source))
        assert best.tokens[-1] == SpecialIds.EOS
        np.testing.assert_allclose(best.weights.sum(-1), 1.0, rtol=1e-4)


def test_decoder_samples_by_its_seed(setting):
    task, model, params = setting
    split = task.split("test").select(range(5))
    config = SearchConfig(method="sample")
    one, same, other = (
        [best.tokens.tolist() for (best,) in Searcher(model, config, seed=seed)(
            params, split, SmokeConfig())]
        for seed in (0, 0, 1)
    )  # fmt: skip
    assert one == same != other


def test_every_batch_draws_with_a_key_of_its_own(setting):
    task, model, params = setting
    same = task.split("test").select([0] * 6)
    decode = Searcher(model, SearchConfig(method="sample"))
    found = decode(params, same, SmokeConfig(eval_batch_size=1))
    assert len({tuple(best.tokens) for (best,) in found}) > 1


def subwords(*pieces):
    symbols = SymbolVocabulary("symbols", pieces)
    return types.SimpleNamespace(
        kind=SUBWORDS, size=symbols.size, encode=symbols.encode, decode=symbols.decode,
        tokens=symbols.tokens, surfaces=symbols.surfaces, as_unknown=symbols.as_unknown,
        save=symbols.save,
    )  # fmt: skip


def test_pharaoh_line_links_words_of_pieces():
    weights = np.array([[0.3, 0.3, 0.4, 0], [0.1, 0.1, 0.8, 0], [0.2, 0, 0.6, 0.2], [0, 0, 0, 1]])
    hypothesis = Hypothesis(np.array([5, 6, 7, 2]), -1.0, -1.0, weights)
    source, target = subwords("▁new", "er", "▁car"), subwords("<pad>", "▁neu", "▁Wa", "gen")
    assert pharaoh_line(hypothesis, np.array([4, 5, 6, 2]), "", source, target) == "0-0 1-1"
    # Read from the step after, whose row for the last piece lies wholly on EOS.
    assert pharaoh_line(hypothesis, np.array([4, 5, 6, 2]), "", source, target, 1) == "1-0 1-1"


def test_pharaoh_line_links_characters_where_no_spaces_are_written():
    weights = np.array([[0.2, 0.6, 0.2, 0], [0.1, 0.1, 0.8, 0], [0, 0, 0, 1]])
    hypothesis = Hypothesis(np.array([4, 5, 2]), -1.0, -1.0, weights)
    source, target = subwords("▁我", "喜欢", "书"), subwords("▁like", "▁它们")
    # Both characters of a piece are linked, and each character of a word that is written.
    line = pharaoh_line(hypothesis, np.array([4, 5, 6, 2]), "我喜欢书", source, target)
    assert line == "1-0 2-0 3-1 3-2"


@pytest.mark.parametrize(("source", "target"), [((), ()), ((4, 5), ()), ((), (4, 5, 4))])
@pytest.mark.parametrize("shift", [0, 1])
def test_pharaoh_line_of_nothing_is_empty(source, target, shift):
    weights = np.ones((len(target) + 1, len(source) + 1)) / (len(source) + 1)
    hypothesis = Hypothesis(np.array([*target, 2]), -1.0, -1.0, weights)
    given = np.array([*source, 2]), "", *(subwords("▁a", "▁b") for _ in range(2)), shift
    assert pharaoh_line(hypothesis, *given) == ""
    assert word_weights(hypothesis, *given).weights.shape == (len(target), len(source))


@pytest.mark.parametrize(
    "mechanism",
    [
        {"name": "neural_coverage", "attention_dim": 8, "coverage_dim": 3},
        {"name": "linguistic_coverage", "attention_dim": 8},
    ],
    ids=lambda mechanism: mechanism["name"],
)
def test_beams_of_a_coverage_mechanism_score_as_forced_decoding_does(setting, mechanism):
    """With large random parameters, so that what was covered changes what is said next."""
    task, _, _ = setting
    config = dataclasses.replace(
        tiny_config().model, attention=MECHANISMS.config(mechanism["name"])(**mechanism)
    )
    model = build_model(config, task.source_vocabulary.size, task.target_vocabulary.size)
    params = jax.tree.map(lambda leaf: 3 * leaf, jax.jit(model.init)(jax.random.key(5)))
    split = task.split("test").select(range(4))
    search = SearchConfig(
        beam_size=4, num_hypotheses=4, max_length_constant=2, length_normalization="gnmt",
        coverage_penalty="gnmt", no_repeat_ngram_size=2,
    )  # fmt: skip
    found = Searcher(model, search)(params, split, SmokeConfig(eval_batch_size=4))
    assert any(len({tuple(one.tokens[:4]) for one in hypotheses}) > 1 for hypotheses in found)
    pairs = [
        (source, one)
        for source, hypotheses in zip(split.source_ids, found, strict=True)
        for one in hypotheses
    ]
    assert len(pairs) == 16
    output = jax.jit(model.apply)(params, forced_batch(pairs))
    log_probs = np.asarray(jax.nn.log_softmax(output.predictions.logits))
    weights = np.asarray(output.attention.weights)
    for row, (source, one) in enumerate(pairs):
        length = len(one.tokens)
        log_prob = log_probs[row, np.arange(length), one.tokens].sum()
        np.testing.assert_allclose(one.log_prob, log_prob, rtol=1e-4, atol=1e-4)
        forced = weights[row, :length, : len(source)]
        np.testing.assert_allclose(one.weights, forced, atol=1e-4)
        penalty = coverage_penalty("gnmt", 0.2, forced, len(source) - 1)
        expected = log_prob / ((5 + length) / 6) + penalty
        np.testing.assert_allclose(one.score, expected, rtol=1e-4, atol=1e-4)


def forced_batch(pairs):
    """Returns the batch of sources and the hypotheses found for them."""
    batch = {}
    for name, rows in (
        ("source", [source for source, _ in pairs]),
        ("target", [one.tokens for _, one in pairs]),
    ):
        ids = np.zeros((len(rows), max(map(len, rows))), np.int32)
        for row, tokens in enumerate(rows):
            ids[row, : len(tokens)] = tokens
        batch[name] = ids
        batch[f"{name}_mask"] = ids != SpecialIds.PAD
    return batch


def test_decoder_refuses_a_search_that_needs_attention_that_is_not_there(setting):
    task, _, _ = setting
    config = dataclasses.replace(tiny_config().model, attention=MECHANISMS.config("none")())
    model = build_model(config, task.source_vocabulary.size, task.target_vocabulary.size)
    for search in (SearchConfig(coverage_penalty="gnmt"), SearchConfig(replace_unknown=True)):
        with pytest.raises(ConfigError, match=f"^search.{search.needs_alignment}: expected a"):
            Searcher(model, search)
