"""Trackers against hand-computed cases."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.ops.trackers import coverage, neural_coverage, previous_weights
from attention_jax.types import AttentionOutput, Memory


def memory_of(size, **aux):
    return Memory(jnp.zeros((size, 1)), jnp.zeros((size, 1)), jnp.ones(size, bool), aux)


def follow(tracker, rows, memory, params=None, query=None):
    """Returns the values after each row of weights."""
    params = params or {}
    values = [tracker.init(params, memory)]
    query = jnp.zeros((1, 1)) if query is None else query
    for row in rows:
        output = AttentionOutput(None, jnp.asarray([row]), None)
        values.append(tracker.update(params, values[-1], query, output, memory))
    return np.asarray(values)


def test_previous_weights_are_those_of_the_query_before():
    rows = [[0.6, 0.4], [0.1, 0.9]]
    np.testing.assert_allclose(follow(previous_weights(), rows, memory_of(2)), [[0, 0], *rows])


def test_coverage_sums_up_relative_to_fertility():
    rows = [[0.9, 0.1], [0.5, 0.5]]
    plain = follow(coverage(), rows, memory_of(2))
    np.testing.assert_allclose(plain, [[0, 0], [0.9, 0.1], [1.4, 0.6]], rtol=1e-6)
    memory = memory_of(2, inverse=1 / (2 * jax.nn.sigmoid(jnp.asarray([0.0, 1.0]))))
    found = follow(coverage(lambda memory: memory.aux["inverse"]), rows, memory)
    expected = [[0, 0], [0.9, 0.06839397], [1.4, 0.41036383]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_coverage_keeps_the_gradient_of_all_earlier_weights():
    def first_slot(rows):
        value = coverage().init({}, memory_of(2))
        for row in rows:
            output = AttentionOutput(None, row[None], None)
            value = coverage().update({}, value, jnp.zeros((1, 1)), output, memory_of(2))
        return value[0]

    gradient = jax.grad(first_slot)(jnp.asarray([[0.9, 0.1], [0.5, 0.5]]))
    np.testing.assert_array_equal(gradient, [[1, 0], [1, 0]])


def test_neural_coverage_without_gates():
    """C_1 = tanh(0.5 w_a + 0.1 + (-0.2)) = tanh(0.4) with w_a = 1."""
    memory = memory_of(1, coverage_input=jnp.asarray([[0.1]]))
    params = {
        "coverage_weight": jnp.asarray([1.0]),
        "coverage_query": jnp.asarray([[-0.2]]),
        "coverage_recurrent": jnp.asarray([[0.5]]),
    }
    found = follow(neural_coverage(1, "tanh"), [[0.5], [0.0]], memory, params, jnp.ones((1, 1)))
    second = np.tanh(0.5 * np.tanh(0.4) - 0.1)
    np.testing.assert_allclose(found[:, 0, 0], [0, 0.37994896, second], rtol=1e-6)


def test_neural_coverage_with_gates(numpy_rng):
    depth, size, query_dim = 2, 3, 2
    draw = lambda *shape: numpy_rng.normal(size=shape)  # noqa: E731
    recurrent, weight = draw(depth, 3 * depth), draw(3 * depth)
    to_query, entering = draw(query_dim, 3 * depth), draw(size, 3 * depth)
    query, rows = draw(1, query_dim), [[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]]
    values = [np.zeros((size, depth))]
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    for row in rows:
        gates = np.asarray(row)[:, None] * weight + entering + query @ to_query
        old, (reset, update, new) = values[-1], np.split(gates, 3, axis=-1)
        reset = sigmoid(reset + old @ recurrent[:, :depth])
        update = sigmoid(update + old @ recurrent[:, depth : 2 * depth])
        new = np.tanh(new + (reset * old) @ recurrent[:, 2 * depth :])
        values.append(update * old + (1 - update) * new)
    f32 = lambda array: jnp.asarray(array, jnp.float32)  # noqa: E731
    params = {
        "coverage_weight": f32(weight),
        "coverage_query": f32(to_query),
        "coverage_recurrent": f32(recurrent),
    }
    memory = memory_of(size, coverage_input=f32(entering))
    found = follow(neural_coverage(depth, "gru"), rows, memory, params, f32(query))
    np.testing.assert_allclose(found, values, rtol=1e-5, atol=1e-6)
