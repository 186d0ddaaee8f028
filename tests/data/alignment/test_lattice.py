"""The HMM's recursions against a case worked out by hand and against sums over all paths."""

import numpy as np
import pytest

from attention_jax.data.alignment.lattice import forward_backward, viterbi
from tests.data.alignment import slow_aligners

EMISSIONS = np.array([[[0.6, 0.1, 0.1], [0.2, 0.5, 0.2], [0.1, 0.3, 0.7]]])
TRANSITIONS = np.array([[0.375, 0.625, 0], [0.2, 0.3, 0.5], [0, 0.4, 0.6]])


def distributions(rng, *shape):
    values = rng.random(shape)
    return values / values.sum(axis=-1, keepdims=True)


def random_problem(rng, length, positions, number=3):
    return (
        rng.random((number, length, positions)),
        rng.random((number, length)),
        distributions(rng, positions),
        distributions(rng, positions, positions),
    )


def test_forward_backward_golden():
    start = np.full(3, 1 / 3)
    posteriors, _, _, log_probs = forward_backward(
        EMISSIONS, np.zeros((1, 3)), start, TRANSITIONS, 0.0
    )
    np.testing.assert_allclose(np.exp(log_probs), [0.04175166667])
    expected = [
        [0.76943036, 0.10538501, 0.12518462, 0],
        [0.08802044, 0.81713305, 0.09484651, 0],
        [0.0501976, 0.25430123, 0.69550118, 0],
    ]
    np.testing.assert_allclose(posteriors[0], expected, atol=1e-8)
    # The best path, 0 1 2, has probability .6/3 * .625 * .5 * .5 * .7.
    states = viterbi(EMISSIONS, np.zeros((1, 3)), start, TRANSITIONS, 0.0)
    np.testing.assert_array_equal(states, [[0, 1, 2]])


@pytest.mark.parametrize(("length", "positions"), [(1, 1), (1, 3), (4, 1), (4, 2), (3, 3)])
@pytest.mark.parametrize("p0", [0.0, 0.3])
def test_recursions_equal_sums_over_all_paths(numpy_rng, length, positions, p0):
    problem = random_problem(numpy_rng, length, positions)
    emissions, null_emissions, start, transitions = problem
    posteriors, starts, jumps, log_probs = forward_backward(*problem, p0)
    states = viterbi(*problem, p0)
    expected = [
        slow_aligners.summed_over_paths(emissions[n], null_emissions[n], start, transitions, p0)
        for n in range(len(emissions))
    ]
    np.testing.assert_allclose(np.exp(log_probs), [each[0] for each in expected])
    np.testing.assert_allclose(posteriors, [each[1] for each in expected], atol=1e-12)
    np.testing.assert_allclose(starts, sum(np.array(each[2]) for each in expected))
    np.testing.assert_allclose(jumps, sum(np.array(each[3]) for each in expected), atol=1e-12)
    np.testing.assert_array_equal(states, [each[4] for each in expected])


@pytest.mark.parametrize("p0", [0.0, 0.3])
def test_expected_counts_are_derivatives_of_the_log_likelihood(numpy_rng, p0):
    emissions, null_emissions, start, transitions = random_problem(numpy_rng, 3, 4)
    _, starts, jumps, _ = forward_backward(emissions, null_emissions, start, transitions, p0)

    def log_likelihood(start, transitions):
        return forward_backward(emissions, null_emissions, start, transitions, p0)[3].sum()

    def slope(array, place, evaluate):
        up, down = array.copy(), array.copy()
        up[place] *= 1 + 1e-6
        down[place] *= 1 - 1e-6
        return (evaluate(up) - evaluate(down)) / 2e-6

    for place in np.ndindex(4):
        found = slope(start, place, lambda array: log_likelihood(array, transitions))
        np.testing.assert_allclose(starts[place], found, rtol=1e-5)
    for place in np.ndindex(4, 4):
        found = slope(transitions, place, lambda array: log_likelihood(start, array))
        np.testing.assert_allclose(jumps[place], found, rtol=1e-5)


def test_null_is_taken_where_nothing_else_fits():
    emissions, null_emissions = np.full((1, 3, 2), 0.1), np.array([[0.01, 0.9, 0.01]])
    transitions = np.array([[0.1, 0.9], [0.5, 0.5]])
    states = viterbi(emissions, null_emissions, np.array([1.0, 0.0]), transitions, 0.5)
    # After NULL the jump is measured from position 0, from which 1 is the best.
    np.testing.assert_array_equal(states, [[0, 2, 1]])


def test_of_equal_states_the_first_is_taken_and_words_before_null():
    half = np.full((2, 2), 0.5)
    args = np.full((1, 2, 2), 0.5), np.full((1, 2), 0.25), np.full(2, 0.5), half
    np.testing.assert_array_equal(viterbi(*args, 0.5), [[0, 0]])


def test_long_sentences_do_not_underflow(numpy_rng):
    emissions, null_emissions, start, transitions = random_problem(numpy_rng, 300, 5)
    posteriors, _, _, log_probs = forward_backward(
        1e-6 * emissions, 1e-6 * null_emissions, start, transitions, 0.2
    )
    assert np.all(log_probs < -745)  # below what a float64 can hold as a probability
    np.testing.assert_allclose(posteriors.sum(axis=-1), 1)
    scaled = viterbi(1e-6 * emissions, 1e-6 * null_emissions, start, transitions, 0.2)
    np.testing.assert_array_equal(
        scaled, viterbi(emissions, null_emissions, start, transitions, 0.2)
    )
