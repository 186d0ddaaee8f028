"""The pointer sentinel against NumPy, step by step and all at once, within its window alone."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.readout import READOUTS, ReadoutSizes, Step
from attention_jax.objectives import build_objective
from attention_jax.types import ModelOutput, SpecialIds
from tests.conformance.test_rows_alone import batch
from tests.models.test_encoders_with_decoders import with_readout
from tests.parameters import drawn
from tests.quick import quick_jit
from tests.teacher_forcing import compare_steps

B, T, V, F, L = 2, 6, 8, 4, 3
TARGETS = np.array([[5, 6, 5, 7, 6, SpecialIds.EOS], [4, 4, SpecialIds.EOS, 0, 0, 0]])
MASK = np.arange(T) < np.array([[6], [3]])


@pytest.fixture(scope="module")
def toy():
    """The readout with its parameters and features, drawn."""
    readout = READOUTS.find("pointer_sentinel").build(
        READOUTS.config("pointer_sentinel")(window=L), ReadoutSizes(V, F, F)
    )
    rng = np.random.default_rng(4)
    params = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), dict(readout.parameters))
    return readout, params, rng.normal(size=(B, T, F))


def expected(params, features):
    """Returns p `B T V` and the shares of pointer and sentinel at the targets, word by word."""
    pointer, words = params["pointer"], np.concatenate([np.full((B, 1), 1), TARGETS[:, :-1]], 1)
    probs, shares = np.zeros((B, T, V)), np.zeros((B, T))
    for b, t in np.ndindex(B, T):
        query = np.tanh(features[b, t] @ pointer["query"]["kernel"] + pointer["query"]["bias"])
        near = [i for i in range(max(0, t - L + 1), t + 1) if words[b, i] not in (0, 1)]
        scores = [query @ features[b, i] for i in near] + [query @ pointer["sentinel"]]
        weights = np.exp(scores) / np.exp(scores).sum()
        logits = features[b, t] @ params["output"].T + params["output_bias"]
        probs[b, t] = weights[-1] * np.exp(logits) / np.exp(logits).sum()
        shares[b, t] = weights[-1]
        for place, weight in zip(near, weights, strict=False):
            probs[b, t, words[b, place]] += weight
            shares[b, t] += weight * (words[b, place] == TARGETS[b, t])
    return probs, shares


def as_floats(tree):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, float), tree)


def source(readout, rows):
    return {"rows": jnp.zeros(rows)}


def test_known_targets_are_those_of_numpy(toy):
    readout, params, features = toy
    step = Step(jnp.asarray(features, float), None, jnp.zeros((V, F)), source(readout, (B, 1)))
    known = jnp.asarray(TARGETS), jnp.asarray(MASK)
    predictions, attention = readout.run(as_floats(params), step, *known)
    probs, shares = expected(params, features)
    found = np.exp(predictions.log_probs())
    np.testing.assert_allclose(found, probs, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.sum(-1), 1.0, atol=1e-6)
    assert attention is None
    (term,) = build_objective({"pointer_loss": {}}).terms.values()
    batch = {"target": jnp.asarray(TARGETS), "target_mask": jnp.asarray(MASK)}
    total = term.total(ModelOutput(predictions, None), batch)
    np.testing.assert_allclose(total, -np.log(shares)[MASK].sum(), rtol=1e-5)
    assert term.count(batch) == MASK.sum()


def test_a_search_carries_the_window(toy):
    readout, params, features = toy
    params, state = as_floats(params), readout.init_state({}, source(readout, (B,)))
    assert {name: leaf.shape for name, leaf in state.items()} == {
        "keys": (B, L, F), "words": (B, L),
    }  # fmt: skip
    state = jax.tree.map(lambda leaf: leaf[:, None], state)
    probs, _ = expected(toy[1], features)
    before = np.concatenate([np.full((B, 1), SpecialIds.BOS), TARGETS[:, :-1]], axis=1)

    @quick_jit
    def advance(state, features, written):
        step = Step(features[:, None], None, jnp.zeros((V, F)), (), written[:, None], state)
        found = readout.step(params, step)
        return found.state, found.predictions.log_probs()[:, 0]

    for t in range(T):
        written = jnp.asarray(before[:, t])
        state, log_probs = advance(state, jnp.asarray(features[:, t], float), written)
        real = MASK[:, t]
        np.testing.assert_allclose(np.exp(log_probs)[real], probs[real, t], rtol=1e-4, atol=1e-6)


def test_transformers_that_read_a_source_point_too():
    """At what they have written, by features that attention and the words before have made."""
    model, given = with_readout("pointer_sentinel", "transformer"), batch()
    params = drawn(model, 1)
    predictions = quick_jit(model.apply)(params, given).predictions
    np.testing.assert_allclose(np.exp(predictions.log_probs()).sum(-1), 1.0, atol=1e-6)
    compare_steps(model, params, given, predictions)
