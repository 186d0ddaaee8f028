"""Rationales: what is not selected is as if it were not there, and every selector learns."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.errors import ConfigError
from attention_jax.layers.selector import SELECTORS
from attention_jax.models import MODELS, build_model
from attention_jax.objectives import build_objective
from attention_jax.types import Call, SpecialIds
from tests.models.test_classifier import LABELS, WORDS, V, alone, batch
from tests.parameters import drawn
from tests.quick import quick_jit

D = 8
OBJECTIVE = {"nll": {}, "rationale": {"sparsity": 0.1}}


@functools.cache
def model(selector="independent", **fields):
    encoder = {"name": "recurrent", "hidden_dim": D}
    level = {"encoder": encoder, "pooling": {"name": "average"}}
    values = {
        "name": "rationalizer", "embedding_dim": D, "words": level, "sentences": level,
        "generator": {"encoder": encoder, "selector": {"name": selector}}, **fields,
    }  # fmt: skip
    config = typed(MODELS.config("rationalizer"), values, "config.model")
    return build_model(config, V, SpecialIds.COUNT + LABELS)


@pytest.mark.parametrize("name", SELECTORS.names())
def test_a_document_alone_is_as_in_its_batch(name):
    built, given = model(name), batch()
    params, apply = drawn(built, 3, scale=1.0), quick_jit(built.apply)
    together, one = apply(params, given), apply(params, alone(given, 1))
    np.testing.assert_allclose(
        one.predictions.log_probs()[0], together.predictions.log_probs()[1], rtol=1e-4, atol=1e-5
    )
    found, expected = one.outputs["selection"], together.outputs["selection"]
    np.testing.assert_allclose(found.selected[0, 0], expected.selected[1, 0, :3], atol=1e-5)
    for name in ("count", "changes", "log_prob", "words"):
        np.testing.assert_allclose(getattr(found, name)[0], getattr(expected, name)[1], rtol=1e-4)
    assert list(expected.words) == [sum(lengths) for lengths in WORDS]
    term, only = build_objective(OBJECTIVE).terms["rationale"], jnp.asarray([[False], [True]])
    np.testing.assert_allclose(
        term.total(together, {**given, "target_mask": only}), term.total(one, alone(given, 1)),
        rtol=1e-4,
    )  # fmt: skip


def test_words_that_are_not_selected_are_not_there():
    """A sentence without its unselected words gives the same label, whatever they were."""
    built, given = model(), batch()
    params = drawn(built, 3, scale=1.0)
    selected = np.asarray(built.apply(params, given).outputs["rationale"]) > 0
    total = selected.sum()
    assert 0 < total < sum(map(sum, WORDS))
    shorter = np.zeros_like(np.asarray(given["source"]))
    for place in np.ndindex(selected.shape[:2]):
        words = np.asarray(given["source"])[place][selected[place]]
        shorter[place][: len(words)] = words
    mask = jnp.asarray((shorter > 0).any(-1))
    everything = jax.tree.map(lambda leaf: leaf, params)
    everything["generator"]["selector"] = {
        "kernel": jnp.zeros_like(params["generator"]["selector"]["kernel"]),
        "bias": jnp.full(1, 20.0),
    }  # fmt: skip
    expected = built.apply(params, given).predictions.log_probs()
    kept = {**given, "source": jnp.asarray(shorter), "source_mask": mask}
    found = built.apply(everything, kept).predictions.log_probs()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_dropped_words_are_selected_like_others_and_read_as_unknown():
    """Selections of a training step are the same without word dropout, what is read is not."""
    given, call = batch(), Call(train=True, rng=jax.random.key(0))
    params = drawn(model(), 3, scale=1.0)
    full, dropped = (
        model(word_dropout=rate).apply(params, given, call) for rate in (0.0, 0.9)
    )
    selected = full.outputs["selection"].selected
    np.testing.assert_array_equal(dropped.outputs["selection"].selected, selected)
    assert selected.sum() > 0
    assert not np.allclose(full.predictions.log_probs(), dropped.predictions.log_probs())


@pytest.mark.parametrize("name", SELECTORS.names())
def test_generator_and_classifier_learn(name):
    built, given, objective = model(name), batch(), build_objective(OBJECTIVE)
    objective.check(built)

    def loss(params):
        output = built.apply(params, given, Call(True, jax.random.key(1)))
        return objective(output, given)[0]

    gradient = quick_jit(jax.grad(loss))(drawn(built, 2))
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))
    for part in ("generator", "words", "sentences", "label_kernel"):
        assert any(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient[part])), part
    assert all(np.asarray(leaf).any() for leaf in jax.tree.leaves(gradient["generator"]))


def test_a_recurrent_selection_knows_of_the_words_before():
    built, given = model("recurrent"), batch()
    params = drawn(built, 2, scale=1.0)
    before = built.apply(params, given).outputs["selection"].log_prob
    params["generator"]["selector"]["memory"] = -params["generator"]["selector"]["memory"]
    assert not np.allclose(before, built.apply(params, given).outputs["selection"].log_prob)


def test_a_generator_that_nothing_teaches_is_one_line():
    with pytest.raises(ConfigError) as error:
        build_objective({"nll": {}}).check(model())
    assert str(error.value) == (
        "config.model.generator: expected config.objectives.rationale beside it, found nll"
    )
