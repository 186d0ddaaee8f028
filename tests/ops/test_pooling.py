"""Pooling against NumPy in float64, padding, and a case worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.pooling import POOLINGS
from attention_jax.ops.pooling import average_pooling, maximum_pooling

LENGTHS = (4, 0, 1)
SIZE, DEPTH, HIDDEN = 4, 3, 2


def given():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(len(LENGTHS), SIZE, DEPTH))
    mask = np.arange(SIZE) < np.array(LENGTHS)[:, None]
    return values, mask


def params():
    rng = np.random.default_rng(1)
    return {
        "kernel": rng.normal(size=(DEPTH, HIDDEN)),
        "bias": rng.normal(size=HIDDEN),
        "query": rng.normal(size=HIDDEN),
    }


def pooling(name):
    fields = {"attention_dim": HIDDEN} if name == "attention" else {}
    return POOLINGS.find(name).build(POOLINGS.config(name)(**fields), DEPTH)


def pool(name, values, mask):
    weights = jax.tree.map(jnp.asarray, params()) if name == "attention" else {}
    return pooling(name).pool(weights, jnp.asarray(values, jnp.float32), jnp.asarray(mask))


def reference(name, values, weights):
    """Pools one sequence without padding; returns its summary and its weights."""
    if name == "average":
        return values.mean(0), np.full(len(values), 1 / len(values))
    if name == "maximum":
        owners = values.argmax(0)
        return values.max(0), np.bincount(owners, minlength=len(values)) / values.shape[1]
    scores = np.tanh(values @ weights["kernel"] + weights["bias"]) @ weights["query"]
    shares = np.exp(scores) / np.exp(scores).sum()
    return shares @ values, shares


@pytest.mark.parametrize("name", POOLINGS.names())
def test_each_pooling_is_its_equation(name):
    values, mask = given()
    found = pool(name, values, mask)
    for row, length in enumerate(LENGTHS):
        if length:
            summary, weights = reference(name, values[row, :length], params())
            np.testing.assert_allclose(found.summary[row], summary, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(found.weights[row, :length], weights, rtol=1e-5, atol=1e-6)
        else:
            assert not np.asarray(found.summary[row]).any()
        assert not np.asarray(found.weights[row, length:]).any()


@pytest.mark.parametrize("name", POOLINGS.names())
def test_padding_counts_nowhere_whatever_stands_there(name):
    values, mask = given()
    spoilt = np.where(mask[..., None], values, np.nan)
    for one, other in zip(pool(name, spoilt, mask), pool(name, values, mask), strict=True):
        np.testing.assert_array_equal(one, other)

    def total(values):
        return pool(name, values, mask).summary.sum()

    gradient = np.asarray(jax.grad(total)(jnp.asarray(spoilt, jnp.float32)))
    assert np.isfinite(gradient).all() and not gradient[~mask].any() and gradient[mask].any()


@pytest.mark.parametrize("name", POOLINGS.names())
def test_no_position_at_all_is_pooled_to_zeros(name):
    found = pool(name, np.zeros((2, 0, DEPTH)), np.zeros((2, 0), bool))
    assert found.summary.shape == (2, DEPTH) and found.weights.shape == (2, 0)
    assert not np.asarray(found.summary).any()


def test_equal_values_share_a_feature():
    values = jnp.asarray([[1.0, 2.0], [1.0, 0.0]])
    np.testing.assert_allclose(
        maximum_pooling(values, jnp.ones(2, bool)).weights, [0.75, 0.25]
    )
    np.testing.assert_allclose(average_pooling(values, jnp.ones(2, bool)).summary, [1.0, 1.0])


def test_a_learnt_query_of_two_units_worked_out_by_hand():
    """h rows are units, W = [[.5, .5], [.5, -.5]], b = 0, q = [1, 1].

    u1 . q = 2 tanh .5 = .924234, u2 . q = tanh .5 - tanh .5 = 0, and 1 / (1 + e^-.924234) = .7159.
    """
    weights = {"kernel": [[0.5, 0.5], [0.5, -0.5]], "bias": [0.0, 0.0], "query": [1.0, 1.0]}
    weights = {name: jnp.asarray(value) for name, value in weights.items()}
    module = POOLINGS.find("attention")
    built = module.build(module.Config(attention_dim=2), 2)
    found = built.pool(weights, jnp.eye(2)[None], jnp.ones((1, 2), bool))
    np.testing.assert_allclose(found.weights[0], [0.71590409, 0.28409591], rtol=1e-6)
    np.testing.assert_allclose(found.summary[0], [0.71590409, 0.28409591], rtol=1e-6)
