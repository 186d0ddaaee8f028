"""The composition of score, normalizer, window and trackers, with parts made for the test."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.attend import AttentionSpec, Tracker, attend, init_state, make_memory
from attention_jax.ops.bands import Band
from attention_jax.ops.scores import dot_scores
from attention_jax.ops.windows import LocalWindow, window_around
from attention_jax.types import Call, Memory

B, T, S, D = 2, 3, 5, 4


def score(params, query, memory, state, positions):
    return dot_scores(query, memory.keys)


def previous_score(params, query, memory, state, positions):
    """Scores that fall with what was attended to before, and with the position."""
    scores = dot_scores(query, memory.keys) - 3.0 * state["total"][..., None, :]
    return scores + 0.1 * positions[:, None] * jnp.arange(scores.shape[-1])


total = Tracker(
    init=lambda params, memory: jnp.zeros(memory.mask.shape),
    update=lambda params, value, query, output, memory: value + output.weights[..., 0, :],
)
PLAIN = AttentionSpec(score)
TRACKING = AttentionSpec(previous_score, trackers=(("total", total),), reads=("total",))


def draw(rng, *batch):
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)  # noqa: E731
    mask = jnp.arange(S) < jnp.asarray([5, 3])[:, None]
    return draw(*batch, T, D), draw(B, S, D), draw(B, S, 2), mask


def test_attend_averages_the_values(numpy_rng):
    query, keys, values, mask = draw(numpy_rng, B)
    memory = make_memory(PLAIN, {}, keys, values, mask)
    output, state = attend(PLAIN, {}, query, memory)
    scores = np.einsum("btd,bsd->bts", *(np.asarray(a, float) for a in (query, memory.keys)))
    exponentials = np.where(mask[:, None], np.exp(scores), 0)
    weights = exponentials / exponentials.sum(-1, keepdims=True)
    np.testing.assert_allclose(output.weights, weights, rtol=1e-5)
    np.testing.assert_allclose(output.context, weights @ np.asarray(values, float), rtol=1e-4)
    np.testing.assert_allclose(output.scores, scores, rtol=1e-4, atol=1e-6)
    assert state == {}


def test_make_memory_hands_the_rest_to_prepare_and_zeroes_padding(numpy_rng):
    def prepare(params, memory, positions):
        shift, keep = memory.aux["shift"], memory.aux["keep"]
        return Memory(memory.keys + shift, memory.values, memory.mask & keep, memory.aux)

    _, keys, values, mask = draw(numpy_rng, B)
    keep = jnp.arange(S) != 1
    spec = AttentionSpec(score, prepare=prepare)
    memory = make_memory(spec, {}, keys, values, mask, shift=jnp.ones(()), keep=keep)
    np.testing.assert_array_equal(memory.mask, mask & keep)
    assert np.all(np.asarray(memory.keys)[~np.asarray(memory.mask)] == 0)
    assert np.all(np.asarray(memory.values)[~np.asarray(memory.mask)] == 0)
    np.testing.assert_allclose(memory.keys[0, 0], keys[0, 0] + 1)
    assert set(memory.aux) == {"shift", "keep"}


@pytest.mark.parametrize("forbidding", [-1e9, -np.inf])
@pytest.mark.parametrize("spec", [PLAIN, TRACKING], ids=["plain", "tracking"])
def test_mask_and_bias_reach_every_query(spec, forbidding, numpy_rng):
    query, keys, values, mask = draw(numpy_rng, B)
    memory = make_memory(spec, {}, keys, values, mask)
    causal = jnp.tril(jnp.ones((T, S), bool))
    bias = jnp.where(causal, 0.0, forbidding)
    masked, _ = attend(spec, {}, query, memory, mask=causal)
    biased, _ = attend(spec, {}, query, memory, bias=bias)
    assert np.all(np.asarray(masked.weights)[:, ~np.asarray(causal)] == 0)
    np.testing.assert_allclose(masked.weights, biased.weights, atol=1e-6)
    per_row, _ = attend(spec, {}, query, memory, mask=jnp.stack([causal, causal]))
    np.testing.assert_allclose(masked.weights, per_row.weights, atol=1e-6)


@pytest.mark.parametrize("spec", [PLAIN, TRACKING], ids=["plain", "tracking"])
def test_a_bias_that_forbids_a_whole_row_is_a_mask(spec, numpy_rng):
    query, keys, values, mask = draw(numpy_rng, B)
    bias = jnp.zeros((T, S)).at[1].set(-jnp.inf)

    def total(query, keys, values):
        memory = make_memory(spec, {}, keys, values, mask)
        output, _ = attend(spec, {}, query, memory, bias=bias)
        return output.context.sum(), output.weights

    gradients, weights = jax.grad(total, (0, 1, 2), has_aux=True)(query, keys, values)
    assert np.all(np.asarray(weights)[:, 1] == 0)
    np.testing.assert_allclose(weights[:, 0].sum(-1), 1, rtol=1e-5)
    assert all(np.isfinite(gradient).all() for gradient in gradients)


def test_mask_and_bias_reach_the_slots_of_a_window(numpy_rng):
    query, keys, values, mask = draw(numpy_rng, B)

    def window(params, query, memory, positions):
        return window_around(jnp.broadcast_to(positions + 1.0, query.shape[:-1]), 1)

    spec = AttentionSpec(score, pattern=LocalWindow(window))
    memory = make_memory(spec, {}, keys, values, mask)
    inside = jnp.abs(jnp.arange(S) - jnp.arange(T)[:, None] - 1) <= 1
    allowed = jnp.asarray(numpy_rng.integers(0, 2, size=(B, T, S)), bool)
    bias = jnp.asarray(numpy_rng.normal(size=(T, S)), jnp.float32)
    found, _ = attend(spec, {}, query, memory, mask=allowed, bias=bias)
    expected, _ = attend(PLAIN, {}, query, memory, mask=allowed & inside, bias=bias)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-6)
    np.testing.assert_allclose(found.context, expected.context, atol=1e-6)


def test_tracked_values_go_from_query_to_query(numpy_rng):
    query, keys, values, mask = draw(numpy_rng, B)
    memory = make_memory(TRACKING, {}, keys, values, mask)
    output, state = jax.jit(functools.partial(attend, TRACKING))({}, query, memory)
    covered = np.zeros((B, S))
    for t in range(T):
        scores = np.einsum("bd,bsd->bs", query[:, t], memory.keys) - 3 * covered
        scores = np.where(mask, scores + 0.1 * t * np.arange(S), -np.inf)
        weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
        np.testing.assert_allclose(output.weights[:, t], weights, rtol=1e-4, atol=1e-6)
        covered += weights
    np.testing.assert_allclose(state["total"], covered, rtol=1e-4, atol=1e-6)


def test_attend_goes_on_from_a_state_and_a_position(numpy_rng):
    query, keys, values, mask = draw(numpy_rng, B)
    memory = make_memory(TRACKING, {}, keys, values, mask)
    whole, final = attend(TRACKING, {}, query, memory)
    first, state = attend(TRACKING, {}, query[:, :2], memory)
    rest, state = attend(TRACKING, {}, query[:, 2:], memory, state, positions=jnp.asarray([2]))
    np.testing.assert_allclose(
        np.concatenate([first.weights, rest.weights], 1), whole.weights, rtol=1e-5, atol=1e-7
    )
    np.testing.assert_allclose(state["total"], final["total"], rtol=1e-5)


def test_trackers_follow_beams_over_a_shared_memory(numpy_rng):
    query, keys, values, mask = draw(numpy_rng, B, 2)
    shared = make_memory(TRACKING, {}, keys[:, None], values[:, None], mask[:, None])
    tiled = jax.tree.map(lambda leaf: jnp.repeat(leaf, 2, 1), shared)
    found, state = attend(TRACKING, {}, query, shared)
    expected, expected_state = attend(TRACKING, {}, query, tiled)
    np.testing.assert_allclose(found.weights, expected.weights, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(state["total"], expected_state["total"], rtol=1e-5, atol=1e-7)


def test_random_normalizers_draw_by_position(numpy_rng):
    def normalizer(params, scores, mask, query, memory, state, *, positions, call):
        keys = jax.vmap(lambda position: call.fold(position).rng)(positions)
        draws = jax.vmap(lambda key: jax.random.uniform(key, (S,)))(keys)
        aux = {"train": jnp.full(scores.shape, call.train)}
        return jnp.broadcast_to(draws, scores.shape) * mask, aux

    query, keys, values, mask = draw(numpy_rng, B)
    spec, rng = AttentionSpec(score, normalizer), jax.random.key(1)
    memory = make_memory(spec, {}, keys, values, mask)
    whole, _ = attend(spec, {}, query, memory, call=Call(True, rng))
    assert bool(whole.aux["train"].all())
    for t in range(T):
        one, _ = attend(
            spec, {}, query[:, t : t + 1], memory, positions=jnp.asarray([t]), call=Call(rng=rng)
        )
        np.testing.assert_array_equal(one.weights[:, 0], whole.weights[:, t])
        assert not bool(one.aux["train"].any())


def test_queries_answered_in_turn_draw_with_keys_of_their_own(numpy_rng):
    """As dropout of weights does, which a mechanism with trackers applies query by query."""

    def drop(params, weights, call):
        return weights * jax.random.bernoulli(call.rng, 0.5, weights.shape)

    def read(params, weights, memory, positions):
        return weights  # so that the contexts show what is left of the weights

    _, keys, values, _ = draw(numpy_rng, B)
    spec = dataclasses.replace(TRACKING, reweight=drop, average=read)
    memory = make_memory(spec, {}, keys, values, jnp.ones((B, S), bool))
    output, _ = attend(
        spec, {}, jnp.ones((B, 8, D)), memory, call=Call(True, jax.random.key(1))
    )
    patterns = {tuple(row) for row in np.asarray(output.context[0] > 0)}
    assert len(patterns) > 1


def test_init_state_is_empty_without_trackers(numpy_rng):
    memory = make_memory(PLAIN, {}, *draw(numpy_rng, B)[1:])
    assert init_state(PLAIN, {}, memory) == {}
    assert PLAIN.is_parallel and not TRACKING.is_parallel


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (dict(reads=("total",)), r"reads: expected only tracked values, found \['total'\]"),
        (dict(trackers=(("total", total),)), r"trackers: expected only what is read, found"),
        (
            dict(trackers=(("total", total),), reads=("total",), pattern=Band(1, 1)),
            r"trackers: expected none beside a pattern, found \['total'\]",
        ),
    ],
)
def test_specs_that_cannot_work_are_rejected_when_built(settings, message):
    with pytest.raises(ValueError, match=message):
        AttentionSpec(score, **settings)
