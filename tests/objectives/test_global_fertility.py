"""Fertility under its normal distribution, against NumPy, padding and boundaries included."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.objectives import global_fertility
from attention_jax.types import AttentionOutput, Fertility, ModelOutput, SpecialIds

TERM, PAPERS = global_fertility.Term(), global_fertility.Term(min_variance=0.0)
SOURCE_LENGTHS, TARGET_LENGTHS = [4, 2, 3, 0], [2, 3, 0, 1]


def batch_of():
    """Sources that end in EOS; the first also begins with BOS."""
    source = np.full((4, 4), 7)
    for row, length in enumerate(SOURCE_LENGTHS):
        source[row, length - 1 if length else 0] = SpecialIds.EOS
    source[0, 0] = SpecialIds.BOS
    return {
        "source": jnp.asarray(source),
        "source_mask": jnp.arange(4) < jnp.asarray(SOURCE_LENGTHS)[:, None],
        "target_mask": jnp.arange(3) < jnp.asarray(TARGET_LENGTHS)[:, None],
    }


COUNTED = np.zeros((4, 4), bool)
COUNTED[0, 1:3] = COUNTED[1, 0] = True


def total(weights, fertility, term=PAPERS):
    output = ModelOutput(None, AttentionOutput(None, weights, None), {"fertility": fertility})
    return term.total(output, batch_of())


@pytest.mark.parametrize("term", [TERM, PAPERS], ids=["ours", "paper"])
def test_total_is_the_negative_log_likelihood_whatever_padding_holds(term, numpy_rng):
    weights = numpy_rng.dirichlet(np.ones(4), (4, 3))
    mean, log_variance = numpy_rng.normal(size=(2, 4, 4))
    expected = 0.0
    for row, slot in np.argwhere(COUNTED):
        received = weights[row, : TARGET_LENGTHS[row], slot].sum()
        variance = np.exp(log_variance[row, slot]) + term.min_variance
        density = np.exp(-((received - mean[row, slot]) ** 2) / (2 * variance))
        expected -= np.log(density / np.sqrt(2 * np.pi * variance))
    batch = batch_of()
    real = np.einsum("bt,bs->bts", batch["target_mask"], batch["source_mask"])
    junk = lambda values, kept: jnp.asarray(np.where(kept, values, np.nan), jnp.float32)  # noqa: E731
    arguments = junk(weights, real), Fertility(junk(mean, COUNTED), junk(log_variance, COUNTED))
    value, gradients = jax.value_and_grad(total, argnums=(0, 1))(*arguments, term)
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    for gradient in gradients[1]:
        assert np.all((np.asarray(gradient) != 0) == COUNTED)
    np.testing.assert_array_equal(np.asarray(gradients[0]) != 0, real & COUNTED[:, None])
    assert term.count(batch_of()) == COUNTED.sum()


def test_least_where_the_prediction_is_what_happens():
    weights = jnp.full((4, 3, 4), 0.25)
    received = jnp.asarray(TARGET_LENGTHS)[:, None] * jnp.full((4, 4), 0.25)
    gradient = jax.grad(total, argnums=1)(weights, Fertility(received, jnp.zeros((4, 4))))
    np.testing.assert_array_equal(gradient.mean, np.zeros((4, 4)))
    np.testing.assert_allclose(gradient.log_variance, 0.5 * COUNTED)


def test_a_perfect_prediction_is_not_rewarded_without_end():
    weights = jnp.full((4, 3, 4), 0.25)
    received = jnp.asarray(TARGET_LENGTHS)[:, None] * jnp.full((4, 4), 0.25)

    def loss(log_variance, term):
        return total(weights, Fertility(received, jnp.full((4, 4), log_variance)), term)

    least = 0.5 * COUNTED.sum() * np.log(2 * np.pi * TERM.min_variance)
    for log_variance in (-20.0, -200.0):
        np.testing.assert_allclose(loss(log_variance, TERM), least, rtol=1e-5)
    assert loss(-20.0, PAPERS) < least - 10
    off = received + 0.5  # half a word: its gradient stays that of the least variance
    gradient = jax.grad(total)(weights, Fertility(off, jnp.full((4, 4), -200.0)), TERM)
    np.testing.assert_allclose(jnp.abs(gradient).max(), 0.5 / TERM.min_variance, rtol=1e-5)
