"""The objective of rationales: its gradient is that of the expected cost."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.errors import ConfigError
from attention_jax.objectives import build_objective
from attention_jax.objectives.rationale import Term
from attention_jax.objectives.schedule import WeightSchedule
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.ops.rationales import Selection, selection_changes
from attention_jax.types import ModelOutput

COSTS = {(0, 0): 1.0, (0, 1): 0.4, (1, 0): 0.7, (1, 1): 0.1}
BATCH = {"target": jnp.zeros((1, 1), jnp.int32), "target_mask": jnp.ones((1, 1), bool)}


def output(logits, z):
    """A model whose -log p(y) with a selection is its cost, of two words."""
    z = jnp.asarray(z, jnp.float32)
    log_prob = jax.nn.log_sigmoid(jnp.where(z > 0, logits, -logits)).sum()
    changes = selection_changes(z[None], jnp.ones((1, 2), bool))
    selection = Selection(
        z[None, None], z.sum()[None], changes, log_prob[None], jnp.full(1, 2)
    )
    p = jnp.exp(-jnp.asarray(COSTS[tuple(int(each) for each in z)]))
    predictions = SoftmaxPredictions(jnp.log(jnp.stack([p, 1 - p]))[None, None])
    return ModelOutput(predictions, None, {"selection": selection})


@pytest.mark.parametrize("carried", [0.0, 0.6])
def test_reinforce_is_in_expectation_the_gradient_of_the_cost(carried):
    """p = .3, .8: E cost = .43, and its derivative by the logits is -.063, -.096."""
    logits, term = jnp.log(jnp.asarray([0.3 / 0.7, 4.0])), Term(sparsity=0.0)
    found = np.zeros(2)
    for z in COSTS:
        chance = np.exp(float(output(logits, z).outputs["selection"].log_prob[0]))
        found += chance * np.asarray(
            jax.grad(lambda x, z=z: term.total(output(x, z), BATCH, jnp.asarray(carried)))(logits)
        )
    np.testing.assert_allclose(found, [-0.063, -0.096], atol=1e-6)


def test_selected_words_and_changes_cost_what_the_config_says():
    logits = jnp.zeros(2)
    plain, costly = Term(sparsity=0.0, baseline="none"), Term(sparsity=0.5, baseline="none")
    one = output(logits, (0, 1))
    log_prob = float(one.outputs["selection"].log_prob[0])
    difference = costly.total(one, BATCH) - plain.total(one, BATCH)
    np.testing.assert_allclose(difference, 0.5 * (1 + 2 * 1) * (1 + log_prob), rtol=1e-5)


@pytest.mark.parametrize(("coherence", "pulls_to_all"), [(0.5, False), (2.0, True)])
def test_cheap_changes_do_not_pull_towards_all_words(coherence, pulls_to_all):
    """At .87, as HardKuma starts: 1 + 2 c (1 - 2 .87) for each of many words, .26 or -1.96."""
    words, term = 1000, Term(sparsity=1.0, coherence=coherence, baseline="none")

    def omega(p):
        shares, nothing = jnp.full((1, words), p), jnp.zeros(1)
        changes = selection_changes(shares, jnp.ones((1, words), bool))
        selection = Selection(shares[None], shares.sum(-1), changes, nothing, jnp.full(1, words))
        return term.total(ModelOutput(predictions, None, {"selection": selection}), BATCH)

    predictions = output(jnp.zeros(2), (0, 1)).predictions
    slope = jax.grad(omega)(0.87) / words
    np.testing.assert_allclose(slope, 1 - 2 * 0.74 * coherence, atol=0.01)
    assert (slope < 0) == pulls_to_all


def test_the_share_and_the_moving_average():
    term = Term(sparsity=0.0)
    pairs = term.measure(output(jnp.zeros(2), (1, 0)), BATCH, term.start())
    assert tuple(map(float, pairs["share"])) == (1.0, 2.0)
    assert tuple(map(float, pairs["changes"])) == (1.0, 1.0)
    moved = term.follow(jnp.asarray(1.0), pairs)
    np.testing.assert_allclose(moved, 0.9 + 0.1 * 0.7, rtol=1e-6)
    nothing = {name: (0.0 * total, 0.0 * count) for name, (total, count) in pairs.items()}
    assert term.follow(moved, nothing) == moved


def test_the_price_follows_the_share_of_words():
    """One of two words is selected: half as many again as wanted, or five times as many."""
    term = Term(sparsity=0.5, target_share=1 / 3, baseline="none", schedule=WeightSchedule(1))
    one, start = output(jnp.zeros(2), (0, 1)), term.start()
    pairs = term.measure(one, BATCH, start)
    assert float(pairs["price"][0]) == 0.5
    # -log p = .4, and half of the words in place of a third.
    np.testing.assert_allclose(pairs["cost_at_target"], [0.4 + 0.5, 1.0], rtol=1e-6)
    begun = term.follow(start, pairs)
    assert float(begun["price"]) == 0.5 and int(begun["steps"]) == 1  # not before the start
    np.testing.assert_allclose(term.follow(begun, pairs)["price"], 0.5 * np.exp(0.01), rtol=1e-6)
    few = pairs | {"share": (jnp.asarray(0.0), jnp.asarray(2.0))}
    np.testing.assert_allclose(term.follow(begun, few)["price"], 0.5 * np.exp(-0.02), rtol=1e-6)
    stricter = dataclasses.replace(term, target_share=0.1)
    moved = stricter.follow(begun, pairs)["price"]
    np.testing.assert_allclose(moved, 0.5 * np.exp(0.02), rtol=1e-6)
    assert float(term.follow({**begun, "price": jnp.asarray(499.9)}, pairs)["price"]) == 500.0
    # What a change costs stays: 2 x 0.5.
    log_prob = float(one.outputs["selection"].log_prob[0])
    dearer = {**start, "price": jnp.asarray(0.75)}
    more = term.total(one, BATCH, dearer) - term.total(one, BATCH, start)
    np.testing.assert_allclose(more, 0.25 * (1 + log_prob), rtol=1e-5)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"baseline": "none", "decay": 0.5}, "decay: expected only beside baseline"),
        ({"sparsity": 0.0, "coherence": 1.0}, "coherence: expected only beside sparsity above 0"),
        ({"sparsity": 0.0, "target_share": 0.2}, "target_share: expected only beside sparsity"),
    ],
)
def test_fields_that_change_nothing_are_refused(fields, words):
    with pytest.raises(ConfigError, match=words):
        build_objective({"nll": {}, "rationale": fields})
