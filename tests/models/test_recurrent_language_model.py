"""Recurrent language models: step by step as all at once, with a pointer and without."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.decoding.searcher import Searcher
from attention_jax.errors import ConfigError
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.search import SearchConfig
from attention_jax.types import Call, SpecialIds
from tests.parameters import drawn
from tests.quick import quick_jit

B, T, V = 2, 5, 9
READOUTS = {"softmax": {"name": "softmax"}, "pointer": {"name": "pointer_sentinel", "window": 3}}


@functools.cache
def started(readout="pointer", **changes):
    fields = {"embedding_dim": 6, "hidden_dim": 7, "num_layers": 2, "readout": READOUTS[readout]}
    config = MODELS.config("recurrent_language_model")
    model = build_model(typed(config, {**fields, **changes}, "config.model"), 4, V)
    return model, drawn(model)


def batch():
    target = jnp.asarray(np.random.default_rng(0).integers(4, V, (B, T)), jnp.int32)
    mask = jnp.arange(T) < jnp.array([5, 3])[:, None]
    rows = {"prompt": jnp.full((B, 1), SpecialIds.EOS), "prompt_mask": jnp.ones((B, 1), bool)}
    return {**rows, "target": target, "target_mask": mask}


@functools.cache
def transformer():
    """A Transformer that points."""
    attention = {"name": "multi_head", "num_heads": 2, "head_dim": 4}
    stack = {"num_layers": 1, "feed_forward_dim": 7}
    fields = {"embedding_dim": 6, "attention": attention, "decoder": stack}
    config = MODELS.config("language_model")
    readout = {"readout": READOUTS["pointer"]}
    model = build_model(typed(config, {**fields, **readout}, "config.model"), 4, V)
    return model, drawn(model)


@pytest.mark.parametrize("kind", [*READOUTS, "transformer"])
def test_steps_equal_the_whole(kind):
    model, params = transformer() if kind == "transformer" else started(kind)
    expected = quick_jit(model.apply)(params, batch()).predictions.log_probs()
    memory, state = quick_jit(model.start, static_argnums=2)(params, batch(), T)
    previous, step = jnp.full((B, 1), SpecialIds.BOS, jnp.int32), quick_jit(model.step)
    for t in range(T):
        predictions, weights, state = step(params, memory, state, previous)
        found = jax.nn.log_softmax(predictions.logits)
        real = np.asarray(batch()["target_mask"][:, t])
        np.testing.assert_allclose(found[real, 0], expected[real, t], rtol=1e-4, atol=1e-5)
        assert weights.shape == (B, 1, 1)
        previous = batch()["target"][:, t : t + 1]


def test_neither_prompts_nor_later_tokens_are_read():
    model, params = started()
    given, apply = batch(), quick_jit(model.apply)
    later = {**given, "target": given["target"].at[:, 3:].set(4), "prompt": given["prompt"] + 2}
    expected, found = (apply(params, each).predictions.log_probs() for each in (given, later))
    np.testing.assert_array_equal(found[:, :4], expected[:, :4])
    assert list(model.provides) == ["pointer"] and "pointer" not in started("softmax")[0].provides


@pytest.mark.parametrize("method", ["beam", "sample"])
def test_texts_go_on_from_their_beginnings(method):
    """The window follows its hypothesis: scores are those of teacher forcing."""
    model, params = started()
    prompt = jnp.asarray([[5, 6, SpecialIds.EOS], [7, SpecialIds.EOS, 0]], jnp.int32)
    given = {"prompt": prompt, "prompt_mask": jnp.arange(3) <= jnp.array([[2], [1]])}
    config = SearchConfig(
        method=method, beam_size=3, num_hypotheses=3, max_length_factor=0, max_length_constant=T,
        length_normalization="none",
    )  # fmt: skip
    found = Searcher(model, config).search(params, given, jax.random.key(0))
    apply = quick_jit(model.apply)
    for row, begin in enumerate(([5, 6], [7])):
        for k in range(3):
            length = int(found.lengths[row, k])
            tokens = np.asarray(found.tokens[row, k, :length])
            assert tokens[: len(begin)].tolist() == begin
            target = jnp.asarray(tokens)[None]
            known = {"target": target, "target_mask": jnp.ones((1, length), bool)}
            log_probs = apply(params, known).predictions.log_prob(target)
            expected = log_probs[0, len(begin) :].sum()
            np.testing.assert_allclose(found.log_probs[row, k], expected, rtol=1e-4, atol=1e-4)


def test_every_parameter_learns_and_dropout_is_drawn():
    model, params = started(embedding_dropout=0.5, dropout=0.5, recurrent_dropout=0.5)
    objective = build_objective({"nll": {}, "pointer_loss": {}})

    def loss(params, key):
        call = Call(True, key)
        return objective(model.apply(params, batch(), call), batch())[0]

    losses = [quick_jit(jax.value_and_grad(loss))(params, jax.random.key(n)) for n in (0, 1)]
    assert losses[0][0] != losses[1][0]
    for path, leaf in jax.tree_util.tree_leaves_with_path(losses[0][1]):
        assert jnp.isfinite(leaf).all() and leaf.any(), jax.tree_util.keystr(path)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"num_layers": 1, "dropout": 0.1}, "dropout: expected more than one layer"),
        ({"cell": "gru", "initialization": {"forget_bias": 1.0}}, "forget_bias: .* found 'gru'"),
        ({"readout": {"name": "lexicon_bias"}}, "readout.name: expected .* found no source"),
        ({"readout": {"name": "pointer_sentinel", "window": 0}}, "window: expected at least 1"),
    ],
)
def test_mistakes_are_named(fields, words):
    with pytest.raises(ConfigError, match=words):
        config = typed(MODELS.config("recurrent_language_model"), fields, "config.model")
        build_model(config, 4, V)
