"""Shortlists hold what they should, and a search with one is that of a masked vocabulary."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.data.builders.smoke import Config as SmokeConfig
from attention_jax.data.lexicon import LEXICON, Lexicon
from attention_jax.data.loading import build_task
from attention_jax.decoding.searcher import Searcher
from attention_jax.decoding.shortlist import Shortlister
from attention_jax.errors import ConfigError, DataError
from attention_jax.models import MODELS, build_model
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.search import SearchConfig
from attention_jax.types import SpecialIds
from tests.training.tiny import tiny_config

SHORT = SearchConfig(beam_size=3, num_hypotheses=3, shortlist=1, shortlist_frequent=1)


def lexicon(source_size, target_size, most=2, seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.integers(SpecialIds.COUNT, target_size, (source_size, most)).astype(np.int32)
    return Lexicon(ids, np.full(ids.shape, 1 / most, np.float32))


def test_shortlist_has_special_frequent_and_translated_tokens_and_one_of_few_sizes():
    ids = np.zeros((50, 3), np.int32)
    ids[7], ids[9] = [90, 30, 20], [40, 0, 0]  # translations, the best first; PAD for none
    config = SearchConfig(shortlist=2, shortlist_frequent=2)
    shorten = Shortlister(config, Lexicon(ids, ids.astype(np.float32)), 160)
    source, mask = np.array([[7, 9, 11], [9, 3, 3]]), np.array([[1, 1, 0], [1, 0, 0]], bool)
    # Special and frequent ones up to 5, then 30, 40, 90; 160 / 16 = 10 are a size, so 6 fills up.
    assert shorten(source, mask).tolist() == [0, 1, 2, 3, 4, 5, 6, 30, 40, 90]
    wide = dataclasses.replace(config, shortlist_frequent=6)
    shorten = dataclasses.replace(shorten, config=wide)
    assert shorten(source, mask).tolist() == [*range(17), 30, 40, 90]


def test_a_shortlist_of_everything_is_none():
    config = SearchConfig(shortlist=1, shortlist_frequent=10_000)
    shorten = Shortlister(config, lexicon(9, 20), 20)
    assert shorten(np.array([[5]]), np.array([[True]])) is None


@dataclasses.dataclass(frozen=True)
class Masked:
    """A model of which only some tokens may be written, by logits of minus infinity."""

    model: object
    ids: tuple

    def __getattr__(self, name):
        return getattr(self.model, name)

    def step(self, params, memory, state, tokens):
        predictions, *rest = self.model.step(params, memory, state, tokens)
        allowed = jnp.isin(jnp.arange(predictions.logits.shape[-1]), jnp.array(self.ids))
        return SoftmaxPredictions(jnp.where(allowed, predictions.logits, -jnp.inf)), *rest


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    return build_task(tiny_config().data, tmp_path_factory.mktemp("vocabulary"))


def built(task, **changes):
    config = dataclasses.replace(tiny_config().model, **changes)
    model = build_model(config, task.source_vocabulary.size, task.target_vocabulary.size)
    return model, jax.jit(model.init)(jax.random.key(3))


def with_lexicon(task, count):
    sizes = task.source_vocabulary.size, task.target_vocabulary.size
    split = task.split("test").select(range(count))
    return dataclasses.replace(split, resources={LEXICON: lexicon(*sizes)})


@pytest.mark.parametrize("method", ["beam", "greedy", "sample"])
@pytest.mark.parametrize("tying, depth", [("none", 8), ("target", 8), ("target", 6)])
def test_search_with_a_shortlist_is_that_of_the_masked_vocabulary(task, tying, depth, method):
    """With an output matrix of its own, a tied one, and a tied one behind a projection."""
    model, params = built(task, tie_embeddings=tying, target_embedding_dim=depth)
    assert ("output_projection" in params) == (tying == "target" and depth == 6) or depth == 8
    data, split = SmokeConfig(eval_batch_size=1), with_lexicon(task, 4)
    width = {"beam": SHORT, "greedy": {"num_hypotheses": 1}, "sample": {}}[method]
    config = SHORT if method == "beam" else dataclasses.replace(SHORT, method=method, **width)
    config = dataclasses.replace(config, temperature=1e-6 if method == "sample" else 1.0)
    found = Searcher(model, config)(params, split, data)
    whole = dataclasses.replace(config, shortlist=0)
    shorten = Shortlister(config, split.resources[LEXICON], model.target_vocabulary_size)
    for place, outputs in enumerate(found):
        ids = split.source_ids[place][None]
        shortlist = shorten(ids, np.ones(ids.shape, bool))
        assert shortlist is not None
        masked = Masked(model, tuple(shortlist.tolist()))
        (expected,) = Searcher(masked, whole)(params, split.select([place]), data)
        assert len(outputs) == len(expected)
        for one, other in zip(outputs, expected, strict=True):
            assert one.tokens.tolist() == other.tokens.tolist()
            np.testing.assert_allclose(one.log_prob, other.log_prob, rtol=1e-4, atol=1e-5)
            np.testing.assert_allclose(one.weights, other.weights, atol=1e-5)


def test_model_of_both_directions_and_mixed_precision_write_with_a_shortlist(task):
    fields = {"readout": {"name": "softmax"}, "target_embedding_dim": 8}
    for name, dtype in (("bidirectional", "float32"), ("encoder_decoder", "bfloat16")):
        config = typed(MODELS.config(name), {**fields, "dtype": dtype}, "config.model")
        model = build_model(config, task.source_vocabulary.size, task.target_vocabulary.size)
        params = jax.jit(model.init)(jax.random.key(0))
        split = with_lexicon(task, 3)
        config = dataclasses.replace(SHORT, num_hypotheses=1)
        (one, _, _) = Searcher(model, config)(params, split, SmokeConfig(eval_batch_size=1))
        shorten = Shortlister(config, split.resources[LEXICON], model.target_vocabulary_size)
        ids = split.source_ids[0][None]
        assert set(one[0].tokens) <= {*shorten(ids, np.ones(ids.shape, bool))}


def test_what_cannot_have_a_shortlist_is_refused(task):
    model, params = built(task)
    with pytest.raises(DataError, match="expected a lexicon with the vocabularies of the run"):
        Searcher(model, SHORT)(params, task.split("test"), SmokeConfig())
    values = {"readout": {"name": "pointer_generator"}, "attention": {"name": "bahdanau"}}
    config = typed(MODELS.config("encoder_decoder"), values, "config.model")
    copying = build_model(config, task.source_vocabulary.size, task.target_vocabulary.size)
    with pytest.raises(ConfigError, match=r"search\.shortlist: expected a model whose readout is"):
        Searcher(copying, SHORT)
    with pytest.raises(ValueError, match="shortlist: expected 0 where a first_token is told"):
        SearchConfig(shortlist=1, first_token=5)
