"""Shortlists hold what they should, and a search with one is that of a masked vocabulary."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.data.builders.smoke import Config as SmokeConfig
from attention_jax.data.lexicon import LEXICON, Lexicon
from attention_jax.data.loading import build_task
from attention_jax.decoding.prefixes import PREFIX
from attention_jax.decoding.searcher import Searcher
from attention_jax.decoding.shortlist import Shortlister
from attention_jax.errors import ConfigError
from attention_jax.models import MODELS, build_model
from attention_jax.models.ensemble import Ensemble, name_of
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds
from tests.quick import quick_jit
from tests.training.tiny import tiny_config

ONE_BY_ONE = SmokeConfig(eval_batch_size=1)
SHORT = SearchConfig(beam_size=3, num_hypotheses=3, shortlist=1, shortlist_frequent=1)


def lexicon(source_size, target_size, most=2, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(SpecialIds.COUNT, target_size, (source_size, most)).astype(np.int32)
    shares = np.full(ids.shape, 1 / most, np.float32)
    return Lexicon(ids, shares, np.arange(target_size, dtype=np.int32))


def test_shortlist_has_special_frequent_and_translated_tokens_and_one_of_few_sizes():
    ids = np.zeros((50, 3), np.int32)
    ids[7], ids[9] = [90, 30, 20], [40, 0, 0]  # translations, the best first; PAD for none
    # The last ids are the most frequent ones, as with the letters of byte-pair encoding.
    by_frequency = np.concatenate([np.arange(4), np.arange(159, 3, -1)])
    known = Lexicon(ids, ids.astype(np.float32), by_frequency)
    config = SearchConfig(shortlist=2, shortlist_frequent=2)
    shorten = Shortlister(config, known)
    source, mask = np.array([[7, 9, 11], [9, 3, 3]]), np.array([[1, 1, 0], [1, 0, 0]], bool)
    # 160 / 16 = 10 are a size, so that 157 fills up.
    assert shorten(source, mask).tolist() == [0, 1, 2, 3, 30, 40, 90, 157, 158, 159]
    wide = dataclasses.replace(config, shortlist_frequent=6)
    shorten = dataclasses.replace(shorten, config=wide)
    assert shorten(source, mask).tolist() == [0, 1, 2, 3, 30, 40, 90, *range(147, 160)]


def test_a_shortlist_of_everything_is_none():
    config = SearchConfig(shortlist=1, shortlist_frequent=10_000)
    shorten = Shortlister(config, lexicon(9, 20))
    assert shorten(np.array([[5]]), np.array([[True]])) is None


@dataclasses.dataclass(frozen=True)
class Masked:
    """A model of which only some tokens may be written, by logits of minus infinity.

    Which these are is among its parameters, so that its searches are compiled once.
    """

    model: object
    size: int

    def __getattr__(self, name):
        return getattr(self.model, name)

    def params(self, params, ids):
        allowed = np.isin(np.arange(self.size), ids)
        return {"model": params, "allowed": allowed}

    def start(self, params, batch, max_length=None):
        return self.model.start(params["model"], batch, max_length)

    def step(self, params, memory, state, tokens):
        predictions, *rest = self.model.step(params["model"], memory, state, tokens)
        logits = jnp.where(params["allowed"], predictions.logits, -jnp.inf)
        return SoftmaxPredictions(logits), *rest


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return build_task(tiny_config().data, tmp_path_factory.mktemp("vocabulary"))


def built(task, **changes):
    config = dataclasses.replace(tiny_config().model, **changes)
    model = build_model(config, task.source_vocabulary.size, task.target_vocabulary.size)
    return model, jax.jit(model.init)(jax.random.key(3))


@pytest.fixture(scope="module")
def plain(task):
    """The model of the tiny config, and its parameters."""
    return built(task)


def with_lexicon(task, count):
    """So many sources of the same length, which need one compiled search."""
    sizes = task.source_vocabulary.size, task.target_vocabulary.size
    split = task.split("test")
    length = len(split.source_ids[0])
    places = [place for place, ids in enumerate(split.source_ids) if len(ids) == length][:count]
    assert len(places) == count
    return dataclasses.replace(split.select(places), resources={LEXICON: lexicon(*sizes)})


def assert_searches_as_if_masked(model, params, split, config):
    """Source by source: the shortlist of one is the mask of the whole vocabulary."""
    found = Searcher(model, config)(params, split, ONE_BY_ONE)
    masked = Masked(model, len(split.resources[LEXICON].by_frequency))
    search = Searcher(masked, dataclasses.replace(config, shortlist=0))
    shorten = Shortlister.of(config, split.resources)
    for place, outputs in enumerate(found):
        ids = split.source_ids[place][None]
        shortlist = shorten(ids, np.ones(ids.shape, bool))
        assert shortlist is not None
        of_masked = masked.params(params, shortlist)
        (expected,) = search(of_masked, split.select([place]), ONE_BY_ONE)
        assert len(outputs) == len(expected) > 0
        for one, other in zip(outputs, expected, strict=True):
            assert one.tokens.tolist() == other.tokens.tolist()
            np.testing.assert_allclose(one.log_prob, other.log_prob, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)


SEARCHES = {
    "beam": {},
    "greedy": {"method": "greedy", "num_hypotheses": 1},
    "sample": {"method": "sample", "temperature": 1e-6},  # whose draws depend on how many ids are
    "no_repeats": {"no_repeat_ngram_size": 1},
    "coverage": {"coverage_penalty": "gnmt", "coverage_stepwise": True, "forbid_unknown": True},
}


@pytest.mark.parametrize("search", SEARCHES)
def test_search_with_a_shortlist_is_that_of_the_masked_vocabulary(task, plain, search):
    config = dataclasses.replace(SHORT, **SEARCHES[search])
    assert_searches_as_if_masked(*plain, with_lexicon(task, 3), config)


@pytest.mark.parametrize("depth", [8, 6])
def test_shortlist_of_a_tied_table(task, depth):
    """Also where a projection stands before it."""
    model, params = built(task, tie_embeddings="target", target_embedding_dim=depth)
    assert "output" not in params and ("output_projection" in params) == (depth == 6)
    assert_searches_as_if_masked(model, params, with_lexicon(task, 3), SHORT)


def model_of(task, name="encoder_decoder", **values):
    config = typed(MODELS.config(name), values, "config.model")
    return build_model(config, task.source_vocabulary.size, task.target_vocabulary.size)


def started(task, name="encoder_decoder", **values):
    model = model_of(task, name, **values)
    return model, jax.jit(model.init)(jax.random.key(0))


def test_shortlist_of_a_model_of_both_directions(task):
    model, params = started(task, "bidirectional")
    assert_searches_as_if_masked(model, params, with_lexicon(task, 3), SHORT)


def test_shortlist_in_mixed_precision(task):
    model, params = started(task, dtype="bfloat16")
    assert_searches_as_if_masked(model, params, with_lexicon(task, 3), SHORT)


def test_shortlist_of_an_ensemble(task, plain):
    members = [started(task), plain]
    ensemble = Ensemble(tuple(model for model, _ in members))
    params = {name_of(m): params for m, (_, params) in enumerate(members)}
    split = with_lexicon(task, 1)
    # Both predict over the shortlist, and are combined then.
    model, narrowed = ensemble.shortlisted(params, jnp.arange(6))
    assert [member.readout.sizes.vocabulary_size for member in model.members] == [6, 6]
    (one,) = Searcher(ensemble, SHORT)(params, split, ONE_BY_ONE)
    ids = split.source_ids[0][None]
    shortlist = Shortlister.of(SHORT, split.resources)(ids, np.ones(ids.shape, bool))
    scored = {tuple(best.tokens): best.log_prob for best in one}
    small, of_small = ensemble.shortlisted(params, jnp.asarray(shortlist))
    batch = {"source": jnp.asarray(ids), "source_mask": jnp.ones(ids.shape, bool)}
    start = functools.partial(small.start, max_length=max(map(len, scored)))
    memory, first = quick_jit(start)(of_small, batch)

    @quick_jit
    def step(memory, state, fed):
        predictions, _, state = small.step(of_small, memory, state, fed)
        return predictions.log_probs(), state

    for tokens, log_prob in scored.items():
        state, total = first, 0.0
        for fed, token in zip((SpecialIds.BOS, *tokens[:-1]), tokens, strict=True):
            log_probs, state = step(memory, state, jnp.array([[fed]]))
            total += log_probs[0, 0, list(shortlist).index(token)]
        np.testing.assert_allclose(log_prob, total, rtol=1e-4)


def test_a_shortlist_has_the_tokens_that_are_forced(task, plain):
    model, params = plain
    split = with_lexicon(task, 3)
    shorten = Shortlister.of(SHORT, split.resources)
    without = [shorten(ids[None], np.ones((1, len(ids)), bool)) for ids in split.source_ids]
    size = task.target_vocabulary.size
    prefixes = [np.setdiff1d(np.arange(size), ids)[-2:].astype(np.int32) for ids in without]
    assert all(map(len, prefixes))
    forced = split.with_field(PREFIX, prefixes)
    masked = Masked(model, size)
    search = Searcher(masked, dataclasses.replace(SHORT, shortlist=0))
    for place, outputs in enumerate(Searcher(model, SHORT)(params, forced, ONE_BY_ONE)):
        ids = split.source_ids[place][None]
        known = shorten(ids, np.ones(ids.shape, bool), prefixes[place][None])
        if known is None:
            known = np.arange(size)
        (expected,) = search(masked.params(params, known), forced.select([place]), ONE_BY_ONE)
        for one, other in zip(outputs, expected, strict=True):
            assert one.tokens.tolist() == other.tokens.tolist()
            assert one.tokens[: len(prefixes[place])].tolist() == prefixes[place].tolist()
            np.testing.assert_allclose(one.log_prob, other.log_prob, rtol=1e-4, atol=1e-5)


def test_a_search_with_a_shortlist_goes_on_in_a_larger_cache(task, monkeypatch):
    stack = {"num_layers": 1, "feed_forward_dim": 8}
    tokens = {"name": "tokens", "embedding_dim": 8}
    model, params = started(
        task,
        target_embedding_dim=8,
        sources={"source": {"input": tokens, "encoder": {"name": "self_attention", **stack}}},
        attention={"name": "multi_head", "num_heads": 2, "head_dim": 4},
        decoder={"name": "transformer", **stack},
    )
    monkeypatch.setattr("attention_jax.decoding.searcher.usual_length", lambda length: 2)
    assert_searches_as_if_masked(model, params, with_lexicon(task, 2), SHORT)


def test_what_cannot_have_a_shortlist_is_refused(task, plain):
    model, params = plain
    with pytest.raises(ConfigError, match=r"search\.shortlist: expected 0 where there is no lex"):
        Searcher(model, SHORT)(params, task.split("test"), SmokeConfig())
    many = dataclasses.replace(SHORT, shortlist=3)
    with pytest.raises(ConfigError, match=r"at most the data\.lexicon\.size of the run, 2, f"):
        Searcher(model, many)(params, with_lexicon(task, 1), SmokeConfig())
    copying = model_of(task, readout={"name": "pointer_generator"})
    with pytest.raises(ConfigError, match=r"search\.shortlist: expected 0 for a model that is no"):
        Searcher(copying, SHORT)
    with pytest.raises(ValueError, match="shortlist: expected 0 where a first_token is told"):
        SearchConfig(shortlist=1, first_token=5)
