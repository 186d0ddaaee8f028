"""Bands: what blocks of queries may read, against every query on its own."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.attend import AttentionSpec, attend, make_memory
from attention_jax.ops.bands import Band, in_blocks, reach, split_memory
from attention_jax.ops.scores import scaled_dot_scores
from attention_jax.types import Memory

BANDS = {
    "causal": Band(2, 0),
    "both": Band(1, 2),
    "self": Band(0, 0),
    "wider": Band(9, 9),
    "begin": Band(1, 0, 2),
    "begin and both": Band(1, 1, 3),
    "only begin": Band(0, 0, 99),
    "widest": Band(2**30 - 1, 2**30 - 1, 2**30),  # of which a width is still an int32
}


def score(params, query, memory, state, positions):
    return scaled_dot_scores(query, memory.keys)


def drawn(rng, num_queries, num_slots, batch=(2,)):
    query = rng.normal(size=(*batch, num_queries, 4))
    keys, values = rng.normal(size=(*batch, num_slots, 4)), rng.normal(size=(*batch, num_slots, 3))
    mask = rng.uniform(size=(*batch, num_slots)) < 0.8
    return [jnp.asarray(x, jnp.float32) for x in (query, keys, values)] + [jnp.asarray(mask)]


def expected(query, keys, values, mask, band, first, allowed=True, bias=0.0):
    """Contexts, weights and scores, query by query in float64."""
    query, keys, values = (np.asarray(x, float) for x in (query, keys, values))
    position = first + np.arange(query.shape[1])[:, None]
    offset = np.arange(keys.shape[1]) - position
    inside = (offset >= -band.before) | (np.arange(keys.shape[1]) < band.first)
    inside = inside & (offset <= band.after)
    scores = np.einsum("btd,bsd->bts", query, keys) / np.sqrt(query.shape[-1]) + bias
    exponentials = np.exp(scores) * (inside & np.asarray(mask)[:, None] & allowed)
    total = exponentials.sum(-1, keepdims=True)
    weights = exponentials / np.where(total > 0, total, 1)
    return weights @ values, weights, np.where(inside, scores, 0)


@pytest.mark.parametrize("band", BANDS.values(), ids=BANDS)
@pytest.mark.parametrize(
    ("num_queries", "num_slots", "first"),
    [(7, 7, 0), (1, 7, 0), (1, 7, 4), (1, 7, 6), (3, 7, 2), (7, 9, 1), (1, 1, 0)],
)
def test_blocks_answer_as_every_query_alone(band, num_queries, num_slots, first, numpy_rng):
    query, keys, values, mask = drawn(numpy_rng, num_queries, num_slots)
    spec = AttentionSpec(score, pattern=band)

    @jax.jit
    def found(query, keys, values, positions):
        memory = make_memory(spec, {}, keys, values, mask)
        return attend(spec, {}, query, memory, positions=positions)[0]

    keys = jnp.where(mask[..., None], keys, 0)
    output = found(query, keys, values, first + jnp.arange(num_queries))
    context, weights, scores = expected(query, keys, values, mask, band, first)
    np.testing.assert_allclose(output.context, context, atol=2e-6)
    np.testing.assert_allclose(output.weights, weights, atol=2e-6)
    np.testing.assert_allclose(output.scores, scores, atol=2e-6)


@pytest.mark.parametrize("rows", [5, 1])
def test_masks_and_biases_reach_the_slots_of_a_block(rows, numpy_rng):
    query, keys, values, mask = drawn(numpy_rng, 5, 5)
    band = Band(1, 1, 1)
    spec = AttentionSpec(score, pattern=band)
    allowed = numpy_rng.uniform(size=(2, rows, 5)) < 0.7
    bias = numpy_rng.normal(size=(rows, 5))
    keys = jnp.where(mask[..., None], keys, 0)
    memory = make_memory(spec, {}, keys, values, mask)
    output, _ = attend(
        spec, {}, query, memory, mask=jnp.asarray(allowed), bias=jnp.asarray(bias, jnp.float32)
    )
    context, weights, _ = expected(query, keys, values, mask, band, 0, allowed, bias)
    np.testing.assert_allclose(output.weights, weights, atol=2e-6)
    np.testing.assert_allclose(output.context, context, atol=2e-6)


def test_gradients_are_those_of_a_mask(numpy_rng):
    query, keys, values, mask = drawn(numpy_rng, 7, 7)
    band = Band(2, 1)
    offset = jnp.arange(7) - jnp.arange(7)[:, None]
    inside = (offset >= -band.before) & (offset <= band.after)

    def total(spec, allowed, query, keys, values):
        memory = make_memory(spec, {}, keys, values, mask)
        output, _ = attend(spec, {}, query, memory, mask=allowed)
        return jnp.sum(output.context**2) + jnp.sum(output.weights**2)

    def gradients(spec, allowed):
        return jax.jit(jax.grad(functools.partial(total, spec, allowed), (0, 1, 2)))(
            query, keys, values
        )

    found = gradients(AttentionSpec(score, pattern=band), None)
    for one, other in zip(found, gradients(AttentionSpec(score), inside), strict=True):
        np.testing.assert_allclose(one, other, atol=3e-6)


def test_blocks_hold_the_slots_that_their_queries_may_read():
    band, keys = Band(2, 1), jnp.arange(1.0, 10.0)[None, :, None]
    blocks = in_blocks(band, jnp.arange(9), 9)
    np.testing.assert_array_equal(blocks.positions, [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]])
    np.testing.assert_array_equal(blocks.slots[:, 0], [-2, 2, 6])
    memory = split_memory(Memory(keys, keys, jnp.ones((1, 9), bool)), band, blocks)
    assert memory.keys.shape == (1, 3, 4 + 3, 1)
    np.testing.assert_array_equal(memory.keys[0, :, :, 0], [
        [0, 0, 1, 2, 3, 4, 5], [3, 4, 5, 6, 7, 8, 9], [7, 8, 9, 0, 0, 0, 0]
    ])  # fmt: skip
    np.testing.assert_array_equal(memory.mask[0], memory.keys[0, :, :, 0] > 0)
    assert reach(band, blocks).sum() == 12 * 4 - 2 - 1  # nothing before the beginning
    begun = in_blocks(Band(2, 1, 1), jnp.arange(9), 9)
    np.testing.assert_array_equal(begun.slots, np.insert(blocks.slots, 0, 0, axis=1))
    # Slot 0 is read by all queries, and no longer as a near one by three of them.
    assert reach(Band(2, 1, 1), begun).sum() == 12 * 4 - 2 - 1 - 3 + 12
