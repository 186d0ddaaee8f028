"""Ensembles of models as one: against the models alone, and against means in NumPy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.models.ensemble import Ensemble, name_of
from attention_jax.ops.copying import CopyingPredictions
from attention_jax.ops.ensemble_predictions import COMBINATIONS, EnsemblePredictions
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.search import SearchConfig
from attention_jax.search.dispatch import search_stage
from attention_jax.types import Model
from tests.models import test_language_model as language_model
from tests.models.test_bidirectional import DECODERS, B, S, batch, build
from tests.parameters import drawn


@functools.cache
def members():
    """Two recurrent models of different decoders."""
    one = build("encoder_decoder")
    other = build("encoder_decoder", decoder={"name": "luong", "hidden_dim": 6,
                                              **DECODERS["luong"]})  # fmt: skip
    return (one, drawn(one, 1)), (other, drawn(other, 2))


def joined(*chosen, combination="log_linear", **more):
    models, params = zip(*chosen, strict=True)
    ensemble = Ensemble(models, combination, **more)
    return ensemble, {name_of(m): each for m, each in enumerate(params)}


def combined(log_probs, combination):
    """The definition, in float64."""
    probs = np.exp(np.asarray(log_probs, np.float64))
    if combination == "mean":
        return np.log(probs.mean(0))
    product = np.prod(probs, axis=0) ** (1 / len(probs))
    return np.log(product / product.sum(-1, keepdims=True))


def distributions(model, params):
    output = jax.jit(model.apply)(params, batch())
    return output.predictions.log_probs(), output.attention.weights


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_known_targets_get_the_mean_of_both_models(combination):
    ensemble, params = joined(*members(), combination=combination)
    assert isinstance(ensemble, Model) and "alignment" in ensemble.provides
    found, weights = distributions(ensemble, params)
    alone = [distributions(*member) for member in members()]
    expected = combined([log_probs for log_probs, _ in alone], combination)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(np.exp(found).sum(-1), 1, rtol=1e-5)
    np.testing.assert_allclose(weights, np.mean([each for _, each in alone], 0), rtol=1e-5)
    output = ensemble.apply(params, batch())
    targets = np.asarray(batch()["target"])
    np.testing.assert_allclose(
        output.predictions.log_prob(batch()["target"]),
        np.take_along_axis(expected, targets[..., None], -1)[..., 0], rtol=1e-4, atol=1e-5,
    )  # fmt: skip


@pytest.mark.parametrize("combination", COMBINATIONS)
@pytest.mark.parametrize("number", [1, 2])
def test_an_ensemble_of_equal_models_is_the_model(combination, number):
    member = members()[0]
    found = distributions(*joined(*[member] * number, combination=combination))
    for mine, its in zip(found, distributions(*member), strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-4, atol=1e-5)


def test_only_those_that_attend_at_one_step_are_averaged():
    ensemble, params = joined(*members(), attending=(1,))
    np.testing.assert_array_equal(
        distributions(ensemble, params)[1], distributions(*members()[1])[1]
    )
    assert "alignment" not in joined(*members(), attending=())[0].provides


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_steps_are_those_of_known_targets(combination):
    ensemble, params = joined(*members(), combination=combination)
    expected, attention = distributions(ensemble, params)
    memory, state = ensemble.start(params, batch(), 8)
    tokens = jnp.asarray(batch()["target"])
    step, previous = jax.jit(ensemble.step), jnp.ones((B, 1), jnp.int32)  # BOS
    for place in range(tokens.shape[1]):
        predictions, weights, state = step(params, memory, state, previous)
        np.testing.assert_allclose(
            predictions.log_probs()[:, 0], expected[:, place], rtol=1e-4, atol=1e-5
        )
        np.testing.assert_allclose(weights[:, 0], attention[:, place], rtol=1e-4, atol=1e-5)
        previous = tokens[:, place : place + 1]


def test_a_beam_of_two_equal_models_finds_what_the_model_finds():
    def search(model, params):
        memory, state = model.start(params, batch(), 6)
        step = functools.partial(model.step, params, memory)
        lengths = batch()["source_mask"].sum(-1)
        config = SearchConfig(method="beam", beam_size=3, coverage_penalty="gnmt")
        words = model.slots(memory).is_word
        return search_stage(
            step, state, config, lengths, 6, 6, None, jax.random.key(0), words
        ).hypotheses

    mine, its = (jax.jit(functools.partial(search, model))(params)
                 for model, params in (joined(*[members()[0]] * 2), members()[0]))  # fmt: skip
    np.testing.assert_array_equal(mine.tokens[0], its.tokens[0])
    np.testing.assert_allclose(mine.log_probs[0], its.log_probs[0], rtol=1e-4)
    np.testing.assert_allclose(mine.weights[0], its.weights[0], rtol=1e-4, atol=1e-5)


def test_attention_to_slots_is_brought_to_positions():
    """Beside a pyramid, whose slots stand for several tokens each."""
    pyramid = build("encoder_decoder", encoder={"name": "pyramidal", "hidden_dim": 3})
    ensemble, params = joined(members()[0], (pyramid, drawn(pyramid, 3)))
    _, weights = distributions(ensemble, params)
    output = jax.jit(pyramid.apply)(params[name_of(1)], batch())
    assert output.attention.weights.shape[-1] < S
    spans, slots = np.asarray(output.outputs["slots"].spans), np.asarray(output.attention.weights)
    expected = np.zeros(weights.shape)
    for row, slot in np.ndindex(slots.shape[0], slots.shape[2]):
        first, end = spans[row, slot]
        share = slots[row, :, slot, None] / max(end - first, 1)
        expected[row, :, first:end] += share
    expected = (expected + np.asarray(distributions(*members()[0])[1])) / 2
    np.testing.assert_allclose(weights, expected, rtol=1e-4, atol=1e-6)
    memory, state = ensemble.start(params, batch(), 8)
    _, first, _ = jax.jit(ensemble.step)(params, memory, state, jnp.ones((B, 1), jnp.int32))
    np.testing.assert_allclose(first[:, 0], expected[:, 0], rtol=1e-4, atol=1e-6)
    assert ensemble.slots(memory).is_word.shape == (B, S)


def test_language_models_write_together():
    model, params = language_model.started()
    other = language_model.drawn(model, 5)
    ensemble, both = joined((model, params), (model, other), combination="mean")
    given = language_model.batch()
    output = jax.jit(ensemble.apply)(both, given)
    assert output.attention is None and ensemble.begins_from == "prompt"
    alone = [jax.jit(model.apply)(each, given).predictions.log_probs() for each in (params, other)]
    expected = combined(alone, "mean")
    np.testing.assert_allclose(output.predictions.log_probs(), expected, rtol=1e-4, atol=1e-5)
    memory, state = ensemble.start(both, given, 5)
    predictions, weights, _ = ensemble.step(both, memory, state, jnp.ones((2, 1), jnp.int32))
    np.testing.assert_allclose(
        predictions.log_probs()[:, 0], expected[:, 0], rtol=1e-4, atol=1e-5
    )
    assert weights.shape == (2, 1, 1) and ensemble.slots(memory) is None


@pytest.mark.parametrize("combination", COMBINATIONS)
def test_what_one_model_finds_impossible_is_vetoed_by_the_product_alone(combination):
    certain = SoftmaxPredictions(jnp.array([[0.0, -jnp.inf, 1.0]]))
    open_minded = SoftmaxPredictions(jnp.array([[0.0, 1.0, 2.0]]))
    found = np.exp(EnsemblePredictions([certain, open_minded], combination).log_probs())
    assert np.isfinite(found).all() and found.sum() == pytest.approx(1)
    assert (found[0, 1] == 0) == (combination == "log_linear")


def test_origins_of_a_mean_add_up_to_its_probabilities():
    rng = np.random.default_rng(0)
    words = jnp.array([[[4, 7, 7, 2]]])  # B 1 S; 7 is beyond the vocabulary

    def copying():
        logits, scores = (jnp.asarray(rng.normal(size=(1, 1, size))) for size in (6, 4))
        gate = jnp.asarray(rng.uniform(0.2, 0.8, (1, 1)))
        copied = jnp.log(1 - gate)[..., None] + jax.nn.log_softmax(scores)
        return CopyingPredictions(logits, jnp.log(gate), copied, words, jnp.zeros((1, 1, 2)))

    ensemble = EnsemblePredictions([copying(), copying()], "mean")
    probs = np.exp(ensemble.log_probs())
    np.testing.assert_allclose(probs.sum(), 1, rtol=1e-5)
    for word in (4, 7):
        generated, copied = ensemble.origins(jnp.array([[word]]))
        np.testing.assert_allclose(generated + copied.sum(-1), probs[..., word], rtol=1e-5)
