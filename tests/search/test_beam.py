"""Beam search against exhaustive search, greedy search and its own definitions."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.search import SearchConfig, beam, search
from attention_jax.search.state import follow
from tests.search.toy_model import BOS, EOS, PAD, UNK, ToyModel, jitted, penalty, real


def run(model, config, source_lengths, max_length):
    return jitted(model.step, model.start(), config, jnp.asarray(source_lengths), max_length)


@pytest.mark.parametrize(
    ("normalization", "alpha"), [("none", 1.0), ("length", 1.0), ("length", 0.5), ("gnmt", 0.6)]
)
def test_beam_of_full_width_equals_exhaustive_search(normalization, alpha):
    model = ToyModel(0, batch=8)
    config = SearchConfig(
        beam_size=45, num_hypotheses=6, max_length_factor=0, max_length_constant=4,
        length_normalization=normalization, length_alpha=alpha,
    )  # fmt: skip
    found = run(model, config, [3] * 8, 4)
    for row in range(8):
        scored = [
            (model.rescore(row, tokens)[0] / penalty(normalization, alpha, len(tokens)), tokens)
            for tokens in model.all_outputs(4)
        ]
        scored.sort(reverse=True)
        assert len(scored) == 40
        for rank, (score, tokens) in enumerate(scored[:6]):
            assert real(found, row, rank) == tokens
            np.testing.assert_allclose(found.scores[row, rank], score, rtol=1e-4)


def test_beam_of_full_width_returns_every_output_there_is():
    model = ToyModel(1, batch=1)
    config = SearchConfig(
        beam_size=16, num_hypotheses=16, max_length_factor=1, max_length_constant=0,
        min_length_ratio=0.5, forbid_unknown=True, length_normalization="none",
    )  # fmt: skip
    found = run(model, config, [4], 6)
    expected = list(model.all_outputs(4, shortest=3, forbid_unknown=True))
    assert len(expected) == 12
    assert sorted(real(found, 0, rank) for rank in range(12)) == sorted(expected)
    assert np.all(np.isneginf(found.scores[0, 12:])) and np.all(found.lengths[0, 12:] == 0)
    assert np.all(np.asarray(found.tokens[0, 12:]) == PAD)


@pytest.mark.parametrize("normalization", ["none", "length", "gnmt"])
def test_beam_of_one_equals_greedy(normalization):
    model = ToyModel(0, vocabulary=12, batch=48)
    settings = dict(length_normalization=normalization, max_length_factor=2.0)
    lengths = [1, 2, 3, 4, 5, 6] * 8
    beam = run(model, SearchConfig(beam_size=1, **settings), lengths, 20)
    greedy = run(model, SearchConfig(method="greedy", **settings), lengths, 20)
    for one, other in zip(jax.tree.leaves(beam), jax.tree.leaves(greedy), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_every_leaf_of_the_state_follows_its_hypothesis():
    model = ToyModel(3, vocabulary=10, source=4, batch=5, scale=1.0)
    config = SearchConfig(beam_size=4, num_hypotheses=4, max_length_constant=5)
    found = run(model, config, [2, 3, 4, 5, 6], 18)
    parents_mattered = 0
    for row in range(5):
        for rank in range(4):
            tokens = real(found, row, rank)
            log_prob, weights = model.rescore(row, tokens)
            np.testing.assert_allclose(found.log_probs[row, rank], log_prob, rtol=1e-4)
            np.testing.assert_allclose(
                found.weights[row, rank, : len(tokens)], weights, rtol=1e-4, atol=1e-6
            )
            assert not np.any(found.weights[row, rank, len(tokens) :])
        parents_mattered += len({tuple(real(found, row, rank)[:2]) for rank in range(4)}) > 1
    assert parents_mattered


def test_hypotheses_are_well_formed():
    model = ToyModel(5, vocabulary=9, batch=4)
    config = SearchConfig(
        beam_size=5, num_hypotheses=5, max_length_factor=1.5, max_length_constant=1,
        min_length_ratio=0.5, forbid_unknown=True,
    )  # fmt: skip
    sources = np.array([2, 5, 8, 0])
    found = run(model, config, sources, 11)
    assert found.tokens.shape == (4, 5, 11) and found.weights.shape == (4, 5, 11, 3)
    assert np.all(np.diff(found.scores[:3]) <= 0)
    for row in range(3):
        for rank in range(5):
            tokens = real(found, row, rank)
            assert tokens[-1] == EOS and EOS not in tokens[:-1]
            assert not {PAD, BOS, UNK} & set(tokens)
            assert sources[row] // 2 + 1 <= len(tokens) <= min(11, 1.5 * sources[row] + 1)
            assert np.all(np.asarray(found.tokens)[row, rank, len(tokens) :] == PAD)
        assert len({tuple(real(found, row, rank)) for rank in range(5)}) == 5


def test_filler_rows_change_nothing_for_others():
    model = ToyModel(7, batch=3)
    config = SearchConfig(beam_size=3, num_hypotheses=2)
    with_filler = run(model, config, [4, 0, 5], 12)
    without = run(model, config, [4, 3, 5], 12)
    for row in (0, 2):
        for one, other in zip(jax.tree.leaves(with_filler), jax.tree.leaves(without), strict=True):
            np.testing.assert_array_equal(one[row], other[row])
    assert np.all(with_filler.lengths[1] == 0) and np.all(with_filler.tokens[1] == PAD)
    assert np.all(np.isneginf(with_filler.scores[1]))
    assert not np.any(with_filler.weights[1])


def test_room_in_the_arrays_changes_nothing():
    model = ToyModel(11)
    config = SearchConfig(beam_size=3, num_hypotheses=3, max_length_constant=2)
    small, large = run(model, config, [2, 4], 10), run(model, config, [2, 4], 25)
    np.testing.assert_array_equal(small.tokens, large.tokens[..., :10])
    np.testing.assert_allclose(small.scores, large.scores, rtol=1e-6)


def constant_step(log_probs, calls=None):
    """A model whose distribution is always the same; `calls` counts its steps."""
    table = jnp.log(jnp.asarray(log_probs))

    def step(state, tokens):
        if calls is not None:
            jax.debug.callback(lambda: calls.append(1))
        logits = jnp.broadcast_to(table, (*tokens.shape, len(log_probs)))
        return SoftmaxPredictions(logits), state[..., :1], state

    return step


@pytest.mark.parametrize(
    ("normalization", "steps"),
    [
        # log .6 after one token; a live one has at most log .4, at best with nothing to pay.
        ("none", 1),
        # log .6 = -.51 after one token; the best live one, log .4 = -.92, could still be divided
        # by 20, so that it is only beaten once it stands at -10.2, after twelve tokens.
        ("length", 12),
    ],
)
def test_search_stops_as_soon_as_nothing_live_can_win(normalization, steps):
    calls = []
    config = SearchConfig(
        beam_size=50, length_normalization=normalization, max_length_factor=0,
        max_length_constant=20, forbid_unknown=True,
    )  # fmt: skip
    step = constant_step([0.0, 0.0, 0.6, 0.0, 0.4], calls)
    found = jitted(step, jnp.zeros((1, 1, 1)), config, jnp.array([3]), 20)
    jax.block_until_ready(found)
    jax.effects_barrier()
    assert len(calls) == steps
    assert real(found, 0, 0) == [EOS]


def test_search_stops_once_as_many_have_ended_as_the_beam_is_wide():
    calls = []
    config = SearchConfig(beam_size=2, num_hypotheses=2, max_length_constant=100)
    step = constant_step([0.0, 0.0, 0.5, 0.0, 0.3, 0.2], calls)
    found = jitted(step, jnp.zeros((1, 1, 1)), config, jnp.array([3]), 100)
    jax.block_until_ready(found)
    jax.effects_barrier()
    assert len(calls) == 2
    assert real(found, 0, 0) == [EOS] and real(found, 0, 1) == [4, EOS]


def test_a_finished_hypothesis_is_never_lost():
    # Ending is best at first, then impossible to match: thousands of better-looking live
    # beginnings must not push the first ending out.
    def step(state, tokens):
        first = jnp.log(jnp.array([1e-9, 1e-9, 0.5, 1e-9, 0.3, 0.2]))
        later = jnp.log(jnp.array([1e-9, 1e-9, 1e-6, 1e-9, 0.5, 0.5]))
        logits = jnp.where((tokens == BOS)[..., None], first, later)
        return SoftmaxPredictions(logits), state, state

    config = SearchConfig(beam_size=4, length_normalization="none", max_length_constant=15)
    found = jitted(step, jnp.zeros((1, 1, 1)), config, jnp.array([5]), 15)
    assert real(found, 0, 0) == [EOS]
    np.testing.assert_allclose(found.log_probs[0, 0], np.log(0.5), rtol=1e-6)


def test_state_of_another_shape_is_refused():
    state = {"good": jnp.zeros((2, 1, 3)), "bad": jnp.zeros((2, 3))}
    with pytest.raises(ValueError, match=r"state\['bad'\].*\(2, 1\).*\(2, 3\)"):
        search(constant_step([0.2] * 5), state, SearchConfig(), jnp.array([3, 3]), 8)


def test_search_compiles_once_for_all_batches_of_a_shape():
    model, traces = ToyModel(0), []

    @jax.jit
    def searched(state, lengths):
        traces.append(1)
        return search(model.step, state, SearchConfig(), lengths, 9)

    searched(model.start(), jnp.array([3, 4]))
    searched(model.start(), jnp.array([9, 0]))
    assert len(traces) == 1


class Visits:
    """Walks over the source: what was visited, which only the state knows, decides what is next.

    Token 4 + s visits position s. A position is as likely as `preference` says, but not twice, and
    an output may end once every position was visited.
    """

    def __init__(self, batch, source=4):
        preference = np.random.default_rng(0).normal(size=(batch, source, source))
        self.preference, self.source = jnp.asarray(preference, jnp.float32), source

    def start(self):
        return {"visited": jnp.zeros((len(self.preference), 1, self.source))}

    def step(self, state, tokens):
        here = jax.nn.one_hot(tokens - 4, self.source)
        visited = state["visited"] + here
        places = here @ self.preference - 50.0 * visited
        ends = jnp.where(jnp.all(visited > 0, -1, keepdims=True), 20.0, -50.0)
        never = jnp.full((*tokens.shape, 2), -100.0)
        logits = jnp.concatenate([never, ends, never[..., :1], places], axis=-1)
        return SoftmaxPredictions(logits), here, {"visited": visited}


def test_the_outcome_depends_on_leaves_that_follow_their_hypotheses(monkeypatch):
    config = SearchConfig(beam_size=3, num_hypotheses=3, length_normalization="none")

    def outputs():
        found = run(Visits(5), config, [4] * 5, 6)
        return [real(found, *place) for place in np.ndindex(5, 3)]

    for tokens in outputs():
        assert sorted(tokens) == [EOS, 4, 5, 6, 7]

    def follow_but_for_the_state(tree, parents):
        return tree if isinstance(tree, dict) else follow(tree, parents)

    monkeypatch.setattr(beam, "follow", follow_but_for_the_state)
    assert any(sorted(tokens) != [EOS, 4, 5, 6, 7] for tokens in outputs())
