"""Monotonic alignment against loops in NumPy float64, and what broke in other implementations."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from attention_jax.ops.monotonic import (
    chunk_attention,
    expected_alignment,
    hard_alignment,
    linear_recurrence,
)
from tests.quick import quick_jit

B, T, S = 3, 4, 7
WINDOWS = (1, 2, 3, 20, None)


def alignments(stops):
    """Enumerates where each query may stop: O(T S^2), no recursion along the source."""
    rows, before = [], np.eye(stops.shape[-1])[0]
    for stop in np.asarray(stops, np.float64):
        row = np.zeros_like(before)
        for start, mass in enumerate(before):
            reads = mass
            for place in range(start, len(stop)):
                row[place] += reads * stop[place]
                reads *= 1.0 - stop[place]
        rows.append(row)
        before = row
    return np.array(rows)


def in_turn(stops, align=expected_alignment):
    rows, before = [], jnp.asarray(np.eye(stops.shape[-1])[0], jnp.float32)
    for stop in stops:
        before = align(jnp.asarray(stop), before)
        rows.append(before)
    return np.array(rows)


def chunks(alignment, energies, mask, window):
    """The softmax over each chunk, weighted by how probable its end is."""
    weights = np.zeros_like(alignment, np.float64)
    for end, mass in enumerate(alignment):
        first = 0 if window is None else max(end - window + 1, 0)
        inside = [place for place in range(first, end + 1) if mask[place]]
        if mass and inside:
            exponentials = np.exp(energies[inside] - energies[inside].max())
            weights[inside] += mass * exponentials / exponentials.sum()
    return weights


def probabilities(seed=0, shape=(T, S)):
    """Random ones, with exact zeros and ones among them."""
    rng = np.random.default_rng(seed)
    drawn = rng.random(shape)
    kind = rng.random(shape)
    return np.where(kind < 0.15, 0.0, np.where(kind > 0.9, 1.0, drawn)).astype(np.float32)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_linear_recurrence_equals_its_loop(size, reverse):
    factors, terms = np.random.default_rng(size).normal(size=(2, B, size)).astype(np.float32)
    expected, value = np.zeros((B, size)), np.zeros(B)
    for place in range(size)[:: -1 if reverse else 1]:
        value = factors[:, place] * value + terms[:, place]
        expected[:, place] = value
    found = linear_recurrence(jnp.asarray(factors), jnp.asarray(terms), reverse=reverse)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_expected_alignment_equals_brute_force(seed):
    stops = probabilities(seed)
    np.testing.assert_allclose(in_turn(stops), alignments(stops), rtol=1e-5, atol=1e-7)


def test_the_product_of_what_is_passed_is_exclusive():
    """A slot's own probability of going on is not among those that lead to it."""
    found = expected_alignment(jnp.asarray([0.25, 0.5]), jnp.asarray([1.0, 0.0]))
    np.testing.assert_allclose(found, [0.25, 0.75 * 0.5])


def test_mass_is_at_most_one_and_only_moves_on():
    sums = in_turn(probabilities(2, (30, S))).sum(-1)
    assert np.all(np.diff(sums) <= 1e-6) and sums.max() <= 1 + 1e-6
    reached = np.cumsum(in_turn(probabilities(3, (9, S)) * 0.9), -1)
    assert np.all(np.diff(reached, axis=0) <= 1e-6)


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("size", [1, S])
def test_gradients_are_finite_where_probabilities_are_exact(value, size):
    def loss(stop, previous):
        return (jnp.cos(jnp.arange(size)) * expected_alignment(stop, previous)).sum()

    stop, previous = jnp.full((size,), value), jnp.asarray(np.eye(size)[0], jnp.float32)
    found, gradients = jax.value_and_grad(loss, argnums=(0, 1))(stop, previous)
    assert np.isfinite(found) and all(np.isfinite(each).all() for each in gradients)
    if value:  # more to the left is to stop at the first slot less, and at the second more
        assert gradients[0][0] != 0 and found == 1.0


def test_gradients_equal_finite_differences():
    stop, previous = probabilities(4, (S,)), np.random.default_rng(1).dirichlet(np.ones(S))
    weights = np.cos(np.arange(S))
    with jax.enable_x64(True):
        stop, previous = jnp.asarray(stop, jnp.float64), jnp.asarray(previous)

        def loss(stop):
            return (weights * expected_alignment(stop, previous)).sum()

        gradient, step = jax.grad(loss)(stop), 1e-6
        for place in range(S):
            moved = step * np.eye(S)[place]
            slope = (loss(stop + moved) - loss(stop - moved)) / (2 * step)
            np.testing.assert_allclose(gradient[place], slope, rtol=1e-5, atol=1e-8)


def test_decisions_equal_the_expectation_where_it_is_certain():
    """But for queries after one that stopped nowhere, whose mass is lost in expectation."""
    stops = (probabilities(5, (40, S)) > 0.5).astype(np.float32)
    found, expected, before = [], [], np.eye(S)[0]
    for stop in stops:
        hard = np.array(hard_alignment(jnp.asarray(stop > 0), jnp.asarray(before)))
        found.append(hard)
        expected.append(expected_alignment(jnp.asarray(stop), jnp.asarray(before)))
        before = hard if hard.any() else before
    np.testing.assert_array_equal(found, expected)
    assert 0 < np.sum(found) < len(stops)


def test_decisions_never_go_back_and_may_stay():
    fires = jnp.asarray([False, True, True, False])
    stay = hard_alignment(fires, jnp.asarray([0.0, 0.0, 1.0, 0.0]))
    np.testing.assert_array_equal(stay, [0, 0, 1, 0])
    none = hard_alignment(fires, jnp.asarray([0.0, 0.0, 0.0, 1.0]))
    np.testing.assert_array_equal(none, [0, 0, 0, 0])


@pytest.mark.parametrize("window", WINDOWS)
def test_chunk_attention_equals_its_definition(window):
    """Also for a source that is shorter than the window."""
    rng = np.random.default_rng(6)
    alignment = alignments(probabilities(7, (B, S)))
    energies, mask = 3 * rng.normal(size=(B, S)), rng.random((B, S)) < 0.8
    alignment = alignment * mask
    found = chunk_attention(
        jnp.asarray(alignment, jnp.float32), jnp.asarray(np.where(mask, energies, np.nan)),
        jnp.asarray(mask), window,
    )  # fmt: skip
    rows = zip(alignment, energies, mask, strict=True)
    expected = [chunks(*row, window) for row in rows]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.sum(-1), alignment.sum(-1), rtol=1e-5)
    if window == 1:
        np.testing.assert_allclose(found, alignment, rtol=1e-6)


@pytest.mark.parametrize("window", WINDOWS)
def test_energies_may_lie_far_apart(window):
    """Exponentials of all of them over one peak would be zero, and so would their sum."""
    energies = np.array([-300.0, -299.0, -150.0, 0.0, 90.0, -90.0, 200.0])
    alignment = np.full(S, 1 / S)
    mask = np.ones(S, bool)
    expected = chunks(alignment, energies, mask, window)

    def loss(energies):
        weights = chunk_attention(jnp.asarray(alignment), energies, jnp.asarray(mask), window)
        return (weights * jnp.arange(S)).sum(), weights

    gradient, found = jax.grad(loss, has_aux=True)(jnp.asarray(energies))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)
    assert np.isfinite(gradient).all()


@pytest.mark.parametrize("window", [2, None])
def test_chunks_of_nothing_are_zero_with_finite_gradients(window):
    def loss(alignment, energies):
        mask = jnp.zeros(S, bool)
        return chunk_attention(alignment, energies, mask, window).sum()

    gradients = jax.grad(loss, argnums=(0, 1))(jnp.zeros(S), jnp.full(S, jnp.nan))
    np.testing.assert_array_equal(gradients, np.zeros((2, S)))


def test_without_a_negative_bias_training_is_stuck_at_the_first_position():
    """Queries that stop halfway at each slot never read as far as the symbols that tell anything.

    These stand at every eighth slot alone, among slots that tell nothing. With a bias below zero,
    and noise, they are found.
    """
    number, gap, steps = 4, 8, 120
    kinds = np.full(number * gap, number)
    kinds[gap - 1 :: gap] = np.arange(number)
    keys = jnp.asarray(np.eye(number + 1)[kinds], jnp.float32)  # S N+1
    told = np.where(kinds == np.arange(number)[:, None], 1.0, 1e-3)
    told = jnp.asarray(np.where(kinds == number, 1 / number, told), jnp.float32)  # p(y_t | s), T S
    first, optimizer = jnp.eye(len(kinds))[0], optax.adam(0.1)

    def energies(params):
        return params["kernel"] @ keys.T + params["bias"]

    def loss(params, noise):
        def query(previous, energy):
            alignment = expected_alignment(jax.nn.sigmoid(energy), previous)
            return alignment, alignment

        _, found = jax.lax.scan(query, first, energies(params) + noise)
        return -jnp.log((found * told).sum(-1) + (1 - found.sum(-1)) / number).mean()

    @quick_jit
    def trained(params, deviation):
        def update(carry, rng):
            params, state = carry
            noise = deviation * jax.random.normal(rng, (number, len(kinds)))
            value, gradient = jax.value_and_grad(loss)(params, noise)
            changes, state = optimizer.update(gradient, state)
            return (optax.apply_updates(params, changes), state), value

        keys_of_steps = jax.random.split(jax.random.key(1), steps)
        (params, _), losses = jax.lax.scan(update, (params, optimizer.init(params)), keys_of_steps)
        return energies(params), losses[-1]

    kernel = 0.1 * jax.random.normal(jax.random.key(0), (number, number + 1))
    found = {}
    for bias, deviation in ((0.0, 0.0), (-2.0, 1.0)):
        params = {"kernel": kernel, "bias": jnp.float32(bias)}
        found[bias], value = trained(params, deviation)
        assert (value > 0.95 * np.log(number)) == (bias == 0.0)
    places = {
        bias: in_turn(found[bias] > 0, hard_alignment).argmax(-1).tolist() for bias in found
    }
    assert places == {0.0: [0] * number, -2.0: [*range(gap - 1, number * gap, gap)]}
