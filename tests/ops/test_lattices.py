"""Sums over alignments: against all paths, one by one, and against an RNN transducer's lattice."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.lattices import (
    INDEPENDENT,
    MONOTONIC,
    NEVER,
    RELATIVE_JUMPS,
    SEGMENTS,
    Gates,
    emission_gates,
    first_slot,
    last_slot,
    slot_posterior,
    sum_over_paths,
)
from tests.quick import quick_jit

B, T, S, J = 3, 3, 4, 3
SLOTS, TOKENS = (4, 2, 1), (3, 2, 1)  # of each row
MASK = np.arange(S) < np.asarray(SLOTS)[:, None]
TARGET_MASK = np.arange(T) < np.asarray(TOKENS)[:, None]
TRANSITIONS = {
    "independent": INDEPENDENT, "monotonic": MONOTONIC, "relative_jumps": RELATIVE_JUMPS,
    "segments": SEGMENTS,
}  # fmt: skip
every_transition = pytest.mark.parametrize("name", TRANSITIONS)


def drawn(name):
    """Returns the scores that decide on moves, and emissions, which are log-probabilities."""
    rng = np.random.default_rng(3)
    scores = rng.normal(size=(B, T, S, J) if name == "relative_jumps" else (B, T, S))
    emissions = np.log(rng.uniform(0.05, 0.9, size=(B, T, S)))
    if name == "segments":  # which end at the last slot
        for row, (slots, tokens) in enumerate(zip(SLOTS, TOKENS, strict=True)):
            emissions[row, tokens - 1, : slots - 1] = -np.inf
    return scores, emissions


def moves_of(name, scores, mask):
    return emission_gates(scores, mask[:, None]) if name == "segments" else scores


def summed(name, scores, emissions, mask=MASK, target_mask=TARGET_MASK):
    mask, target_mask = jnp.asarray(mask), jnp.asarray(target_mask)
    arguments = (TRANSITIONS[name], moves_of(name, scores, mask), emissions, mask, target_mask)
    return sum_over_paths(*arguments), slot_posterior(*arguments)


run = quick_jit(summed, static_argnums=0)


def total(name, scores, emissions, mask, target_mask):
    paths, posterior = summed(name, scores, emissions, mask, target_mask)
    return paths.log_probs.sum(), (paths, posterior)


slopes = quick_jit(jax.grad(total, (1, 2), has_aux=True), static_argnums=0)


def softmax(scores):
    weights = np.exp(scores - scores.max())
    return weights / weights.sum()


def matrix(name, scores):
    """Returns p(a_t = i | a_{t-1} = k) of a row without padding, by the definitions."""
    size = len(scores)
    found = np.zeros((size, size))
    for k in range(size):
        if name == "independent":
            found[k] = softmax(scores)
        elif name == "monotonic":
            found[k, k:] = softmax(scores[k:])
        elif name == "relative_jumps":
            reach = min(J, size - k)
            found[k, k : k + reach] = softmax(scores[k, :reach])
        else:
            left = 1.0
            for i in range(k, size):
                gate = 1.0 if i == size - 1 else 1 / (1 + np.exp(-scores[i]))
                found[k, i], left = left * gate, left * (1 - gate)
    return found


def enumerated(name, scores, emissions):
    """Returns (log p(y_1 .. y_t) for each t, posteriors) of a row, summed path by path."""
    length, slots = emissions.shape
    matrices = [matrix(name, scores[t]) for t in range(length)]
    totals = []
    for t in range(1, length + 1):
        occupancy = np.zeros((t, slots))
        for path in itertools.product(range(slots), repeat=t):
            steps = zip((0, *path), path, strict=False)
            probability = np.prod([matrices[u][step] for u, step in enumerate(steps)])
            probability *= np.exp(sum(emissions[u, i] for u, i in enumerate(path)))
            occupancy[np.arange(t), path] += probability
        totals.append(np.log(occupancy[0].sum()))
    return np.asarray(totals), occupancy / occupancy[0].sum()


@every_transition
def test_sums_are_those_of_all_paths(name):
    scores, emissions = drawn(name)
    with jax.enable_x64(True):
        paths, posterior = jax.tree.map(np.asarray, run(name, scores, emissions))
    for row, (slots, tokens) in enumerate(zip(SLOTS, TOKENS, strict=True)):
        part = (scores[row, :tokens, :slots], emissions[row, :tokens, :slots])
        totals, expected = enumerated(name, *part)
        found = paths.log_probs[row]
        np.testing.assert_allclose(np.cumsum(found)[:tokens], totals, rtol=1e-12)
        assert not found[tokens:].any() and not posterior[row, tokens:].any()
        np.testing.assert_allclose(posterior[row, :tokens, :slots], expected, rtol=1e-9, atol=1e-12)
        assert not posterior[row, :, slots:].any()
        np.testing.assert_allclose(np.exp(paths.prior[row, :tokens]).sum(-1), 1.0, rtol=1e-12)


@every_transition
def test_float32_is_close(name):
    scores, emissions = (part.astype(np.float32) for part in drawn(name))
    found = run(name, scores, emissions)
    with jax.enable_x64(True):
        expected = run(name, *drawn(name))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert one.dtype == jnp.float32
        np.testing.assert_allclose(np.exp(one), np.exp(other), rtol=1e-5, atol=1e-6)


@every_transition
def test_what_padding_holds_changes_nothing(name):
    """Nor does more of it: a row alone is the row in its batch, and gradients are finite."""
    scores, emissions = (part.astype(np.float32) for part in drawn(name))
    real = MASK[:, None] & TARGET_MASK[..., None]
    hidden = np.where(real, emissions, np.nan).astype(np.float32)
    junk = np.where(real.reshape(B, T, S, *(1,) * (scores.ndim - 3)), scores, 1e4)
    junk = junk.astype(np.float32)
    (paths, posterior), (found, shown) = run(name, scores, emissions), run(name, junk, hidden)
    np.testing.assert_allclose(found.log_probs, paths.log_probs, rtol=1e-6)
    np.testing.assert_allclose(shown, posterior, atol=1e-6)
    part = (slice(1, 2), slice(TOKENS[1]), slice(SLOTS[1]))
    masks = MASK[1:2, : SLOTS[1]], TARGET_MASK[1:2, : TOKENS[1]]
    alone, seen = run(name, scores[part], emissions[part], *masks)
    np.testing.assert_allclose(alone.log_probs, paths.log_probs[part[:2]], rtol=1e-5)
    np.testing.assert_allclose(seen, posterior[part], atol=1e-6)

    for gradient in slopes(name, junk, hidden, MASK, TARGET_MASK)[0]:
        assert np.isfinite(gradient).all()
        shape = (B, T, S, *(1,) * (gradient.ndim - 3))
        assert not np.where(real.reshape(shape), 0.0, gradient).any()


@every_transition
def test_at_padding_paths_stay_where_they_were(name):
    """What would come next is as likely at one position of padding as at the next."""
    scores, emissions = (part.astype(np.float32) for part in drawn(name))
    scores[:, 2] = scores[:, 1]
    target_mask = np.arange(T) < np.ones((B, 1), int)
    _, (paths, _) = slopes(name, scores, emissions, MASK, target_mask)
    np.testing.assert_allclose(paths.prior[:, 2], paths.prior[:, 1], rtol=1e-6)


@every_transition
def test_what_is_impossible_and_what_is_empty_is_finite(name):
    """An impossible token has about `NEVER`; rows without slots or without tokens do no harm."""
    scores, emissions = (part.astype(np.float32) for part in drawn(name))
    emissions[0] = -np.inf
    mask, target_mask = MASK.copy(), TARGET_MASK.copy()
    mask[1], target_mask[2] = False, False

    gradients, (paths, posterior) = slopes(name, scores, emissions, mask, target_mask)
    for leaf in jax.tree.leaves((gradients, paths.prior, posterior)):
        assert np.isfinite(leaf).all()
    assert paths.log_probs[0, 0] < NEVER / 2 and not paths.log_probs[2].any()
    assert not posterior[1].any() and not posterior[2].any()


@every_transition
def test_derivatives_are_differences(name):
    """Of the posterior, too, which attention that is taught by links needs: second derivatives."""
    scores, emissions = drawn(name)
    possible = np.isfinite(emissions)
    rng = np.random.default_rng(0)
    ways = rng.normal(size=scores.shape), rng.normal(size=emissions.shape)

    @quick_jit
    def along(step):
        at, given = scores + step * ways[0], np.where(possible, emissions, 0) + step * ways[1]
        paths, posterior = summed(name, at, jnp.where(possible, given, -jnp.inf))
        return paths.log_probs.sum() + (posterior * jnp.cos(jnp.arange(S))).sum()

    with jax.enable_x64(True):
        ahead, behind = (float(along(step)) for step in (1e-5, -1e-5))
        slope = quick_jit(jax.grad(along.__wrapped__))(0.0)
    np.testing.assert_allclose(slope, (ahead - behind) / 2e-5, rtol=1e-7)


def rnn_transducer(labels, blanks):
    """Graves (2012), eq. 16: log of the sum over monotone paths of a lattice of slots and labels.

    From (s, t), a label leads to (s, t + 1) and a blank to (s + 1, t); no blank follows the last.
    """
    length, slots = labels.shape
    forward = {}
    for t, s in itertools.product(range(length + 1), range(slots)):
        ways = [jnp.zeros(())] if (t, s) == (0, 0) else []
        if t:
            ways.append(forward[t - 1, s] + labels[t - 1, s])
        if s and t < length:
            ways.append(forward[t, s - 1] + blanks[t, s - 1])
        forward[t, s] = jax.nn.logsumexp(jnp.stack(ways))
    return forward[length, slots - 1]


def test_segments_are_an_rnn_transducer_in_value_and_gradient():
    """Of labels emit + log p(y | slot), and of blanks skip."""
    rng = np.random.default_rng(1)
    gates, emissions = rng.normal(size=(T, S)), np.log(rng.uniform(0.1, 0.9, (T, S)))
    emit, skip = jax.nn.log_sigmoid(gates), jax.nn.log_sigmoid(-gates)
    everywhere, written = jnp.ones((1, S), bool), jnp.ones((1, T), bool)
    ends = jnp.where(np.arange(T)[:, None] == T - 1, jnp.log(last_slot(everywhere)), 0.0)

    def ours(emissions, emit, skip):
        moves, emissions = Gates(emit[None], skip[None]), (emissions + ends)[None]
        return sum_over_paths(SEGMENTS, moves, emissions, everywhere, written).log_probs.sum()

    def theirs(emissions, emit, skip):
        return rnn_transducer(emit + emissions, skip)

    arguments = tuple(map(jnp.float32, (emissions, emit, skip)))
    found, expected = (
        quick_jit(jax.value_and_grad(of, (0, 1, 2)))(*arguments) for of in (ours, theirs)
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5)
    for one, other in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
        assert np.abs(other).max() > 0.1


def test_gates_that_are_wide_open_or_shut_lose_nothing():
    """As a cumulative product does that is divided by; here, what comes in at the last but one."""
    size = 64
    mask, reached = jnp.ones((1, size), bool), jnp.full((1, size), NEVER).at[0, -4].set(0.0)
    scores = jnp.full((1, size), 40.0).at[0, -4].set(-40.0)
    prior = np.exp(quick_jit(SEGMENTS.move)(emission_gates(scores, mask), reached, mask))
    expected = np.zeros(size)
    expected[-3] = 1.0
    np.testing.assert_allclose(prior[0], expected, atol=1e-6)


def test_slots_are_found_by_their_mask():
    mask = jnp.asarray([[False, True, True, False], [True, False, True, False], [False] * 4])
    np.testing.assert_array_equal(first_slot(mask) == 0, [[0, 1, 0, 0], [1, 0, 0, 0], [0] * 4])
    np.testing.assert_array_equal(last_slot(mask), [[0, 0, 1, 0], [0, 0, 1, 0], [0] * 4])


def test_jumps_longer_than_the_source_stay_in_it():
    mask, reached = jnp.ones((1, 2), bool), jnp.log(jnp.asarray([[0.25, 0.75]]))
    prior = np.exp(RELATIVE_JUMPS.move(jnp.zeros((1, 2, 5)), reached, mask))
    np.testing.assert_allclose(prior, [[0.125, 0.875]], rtol=1e-6)
