"""Selections: changes in document order, and HardKuma against NumPy in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.rationales import (
    hard_kuma_decision,
    hard_kuma_probabilities,
    hard_kuma_sample,
    selection_changes,
)


def test_changes_are_those_of_a_case_by_hand():
    """z = 0 1 1 0 1 changes three times, with 3 selected: 3 * 3e-4 + 3 * 6e-4 = .0027."""
    z, mask = jnp.asarray([[0.0, 1.0, 1.0, 0.0, 1.0]]), jnp.ones((1, 5), bool)
    assert selection_changes(z, mask)[0] == 3.0
    assert 3e-4 * float(z.sum() + 2 * selection_changes(z, mask)[0]) == pytest.approx(0.0027)


def test_changes_pass_over_what_is_no_word():
    mask = jnp.asarray([[True, False, True, False, True], [False, True, False, False, False]])
    z = jnp.where(mask, jnp.asarray([[1.0, 0.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0, 0.0]]), 7.0)
    np.testing.assert_array_equal(selection_changes(z, mask), [1.0, 0.0])


def test_expected_changes_are_those_of_all_selections():
    probabilities, mask = np.array([0.3, 0.8, 0.5]), jnp.ones((1, 3), bool)
    expected = 0.0
    for number in range(8):
        z = np.array([number >> bit & 1 for bit in range(3)])
        chance = np.prod(np.where(z, probabilities, 1 - probabilities))
        expected += chance * np.abs(np.diff(z)).sum()
    found = selection_changes(jnp.asarray(probabilities, jnp.float32)[None], mask)
    np.testing.assert_allclose(found[0], expected, rtol=1e-6)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (2.0, 1.0), (1.0, 3.0)])
def test_hard_kuma_is_its_distribution(a, b):
    uniform = (np.arange(20_000) + 0.5) / 20_000
    exact = np.clip(-0.1 + 1.2 * (1 - (1 - uniform) ** (1 / b)) ** (1 / a), 0, 1)
    shapes = (jnp.full(uniform.shape, value, jnp.float32) for value in (a, b))
    sample = np.asarray(hard_kuma_sample(*shapes, jnp.asarray(uniform, jnp.float32)))
    np.testing.assert_allclose(sample, exact, atol=1e-4)
    zero, one = hard_kuma_probabilities(jnp.asarray(a), jnp.asarray(b))
    np.testing.assert_allclose([zero, one], [(exact == 0).mean(), (exact == 1).mean()], atol=2e-3)


def test_a_decision_is_the_most_probable_of_three():
    a, b = jnp.asarray([0.1, 5.0, 2.0]), jnp.asarray([5.0, 0.1, 2.0])
    zero, one, between = hard_kuma_decision(a, b)
    assert (zero, one) == (0.0, 1.0)
    # Of Kuma(2, 2) the mean is 2 B(3/2, 2) = 8/15, stretched to -.1 + 1.2 * 8/15 = .54.
    np.testing.assert_allclose(between, 0.54, rtol=1e-5)


def test_a_sample_has_a_derivative_where_it_is_neither_zero_nor_one():
    uniform = jnp.asarray([1e-9, 0.5, 1.0 - 1e-9])
    gradient = jax.grad(lambda a: hard_kuma_sample(a, jnp.ones(3), uniform).sum())(jnp.ones(3))
    assert np.isfinite(gradient).all() and gradient[1] != 0.0
    assert gradient[0] == gradient[2] == 0.0


@pytest.mark.parametrize("least", [0.0, 1e-30, 1e-19, 1e-6])
def test_hard_kuma_has_finite_gradients_for_shapes_that_underflow(least):
    uniform = jnp.array([0.1, 0.5, 0.9])
    for a, b in ((least, 1.0), (1.0, least), (least, least)):
        shapes = jnp.full(3, a), jnp.full(3, b)
        value, gradients = jax.value_and_grad(
            lambda a, b: hard_kuma_sample(a, b, uniform).sum(), (0, 1)
        )(*shapes)
        assert jnp.isfinite(value) and all(jnp.all(jnp.isfinite(one)) for one in gradients)


@pytest.mark.parametrize(("a", "b"), [(1e-5, 0.5), (1e-3, 1e-4), (1e-30, 1e-30), (0.0, 1.0)])
def test_hard_kuma_has_probabilities_and_gradients_where_powers_round_to_one(a, b):
    places = np.array([0.1, 1.1]) / 1.2
    above = (-np.expm1(max(a, 1e-6) * np.log(places))) ** max(b, 1e-6)
    shapes = jnp.float32(a), jnp.float32(b)
    zero, one = hard_kuma_probabilities(*shapes)
    np.testing.assert_allclose([zero, one], [1 - above[0], above[1]], rtol=2e-4, atol=1e-7)
    gradients = jax.grad(lambda a, b: sum(hard_kuma_probabilities(a, b)), (0, 1))(*shapes)
    assert np.isfinite(gradients).all() and np.isfinite(hard_kuma_decision(*shapes))
