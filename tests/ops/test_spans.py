"""Spans of slots, against loops over positions."""

import jax.numpy as jnp
import numpy as np

from attention_jax.ops import any_in_spans, to_positions

# The last stands for nothing.
SPANS = np.array([[[0, 2], [2, 4], [4, 5]], [[0, 1], [1, 4], [4, 4]]])
SIZE = 5


def test_any_in_spans_is_true_where_a_position_of_the_span_is(numpy_rng):
    flags = numpy_rng.random((2, SIZE)) < 0.4
    flags[1, 3] = True  # of the second span, and no other
    expected = [
        [bool(row[first:end].any()) for first, end in spans]
        for row, spans in zip(flags, SPANS, strict=True)
    ]
    found = any_in_spans(jnp.asarray(flags), jnp.asarray(SPANS))
    np.testing.assert_array_equal(found, expected)
    assert found[1].tolist()[1:] == [True, False]


def test_any_in_spans_takes_rows_of_queries(numpy_rng):
    links = numpy_rng.random((2, 3, SIZE)) < 0.3
    found = any_in_spans(jnp.asarray(links), jnp.asarray(SPANS)[:, None])
    for query in range(3):
        one = any_in_spans(jnp.asarray(links[:, query]), jnp.asarray(SPANS))
        np.testing.assert_array_equal(found[:, query], one)


def test_positions_of_a_slot_share_its_weight(numpy_rng):
    weights = numpy_rng.random((2, 4, 3)).astype(np.float32)
    weights[1, :, 2] = 0  # what stands for nothing gets nothing
    expected = np.zeros((2, 4, SIZE))
    for row, spans in enumerate(SPANS):
        for slot, (first, end) in enumerate(spans):
            expected[row, :, first:end] += weights[row, :, slot, None] / max(end - first, 1)
    found = to_positions(jnp.asarray(weights), jnp.asarray(SPANS), SIZE)
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(found.sum(-1), weights.sum(-1), rtol=1e-6)
