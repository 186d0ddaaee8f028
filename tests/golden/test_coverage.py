"""Coverage embeddings and fertility, worked out by hand."""

import jax.numpy as jnp
import numpy as np

from attention_jax.objectives import coverage_penalty, global_fertility
from attention_jax.ops.trackers import coverage_embedding
from attention_jax.types import AttentionOutput, Fertility, Memory, ModelOutput

# Totals 1.4, .4, .6 and .6 of two target words over four source words; EOS, the fifth, gets 0.
WEIGHTS = [[0.7, 0.1, 0.1, 0.1, 0.0], [0.7, 0.3, 0.5, 0.5, 0.0]]


def test_subtraction_takes_the_weighted_word_off():
    """c0 = [1 0], weight .5, W y = [.4 .2]: c1 = [1 - .2, 0 - .1]."""
    mask = jnp.ones(1, bool)
    memory = Memory(jnp.zeros((1, 1)), jnp.zeros((1, 1)), mask, {"source_ids": jnp.asarray([2])})
    params = {
        "coverage_table": jnp.asarray([[9.0, 9.0], [9.0, 9.0], [1.0, 0.0]]),
        "coverage_word": jnp.asarray([[0.4, 0.2]]),
    }
    tracker = coverage_embedding("subtract", weights="weights")
    first = tracker.init(params, memory)
    np.testing.assert_array_equal(first, [[1, 0]])
    state = {"weights": jnp.asarray([0.5])}
    found = tracker.observe(params, first, state, {"written_word": jnp.ones(1)}, memory)
    np.testing.assert_allclose(found, [[0.8, -0.1]], rtol=1e-6)


def test_fertility_is_as_likely_as_its_normal_distribution():
    """mu = [1 .5 1 .5], var = [.5 .5 1 2]: 3.58168054 in all; EOS does not count."""
    batch = {
        "source": jnp.asarray([[5, 6, 7, 8, 2]]),
        "source_mask": jnp.ones((1, 5), bool),
        "target_mask": jnp.ones((1, 2), bool),
    }
    variance = jnp.log(jnp.asarray([[0.5, 0.5, 1.0, 2.0, 3.0]]))
    output = ModelOutput(
        None,
        AttentionOutput(None, jnp.asarray([WEIGHTS]), None),
        {"fertility": Fertility(jnp.asarray([[1.0, 0.5, 1.0, 0.5, 9.0]]), variance)},
    )
    term = global_fertility.Term(min_variance=0.0)
    np.testing.assert_allclose(term.total(output, batch), 3.58168054, rtol=1e-6)
    assert term.count(batch) == 4
    batch["source_mask"] = batch["source_mask"].at[0, 4].set(False)
    np.testing.assert_allclose(coverage_penalty.Term().total(output, batch), 0.84, rtol=1e-6)
