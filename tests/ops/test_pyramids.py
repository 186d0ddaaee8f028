"""Pyramids: pairs of neighbours in NumPy, odd lengths, and what slots stand for."""

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.pyramids import merge_pairs, pyramid_spans


@pytest.mark.parametrize("size", [1, 2, 5, 6])
def test_pairs_are_neighbours_and_a_last_one_alone_stands_beside_zeros(size, numpy_rng):
    lengths = [size, max(size - 2, 0), 1]
    values = numpy_rng.normal(size=(3, size, 2)).astype(np.float32)
    mask = np.arange(size) < np.array(lengths)[:, None]
    junk = jnp.asarray(np.where(mask[..., None], values, np.nan))
    merged, real = merge_pairs(junk, jnp.asarray(mask))
    assert merged.shape == (3, (size + 1) // 2, 4)
    for row, length in enumerate(lengths):
        expected = np.zeros(merged.shape[1:])
        for place in range(length):
            side = slice(0, 2) if place % 2 == 0 else slice(2, 4)
            expected[place // 2, side] = values[row, place]
        np.testing.assert_array_equal(merged[row], expected)
        assert np.asarray(real)[row].sum() == (length + 1) // 2


def test_levels_halve_37_to_19_10_and_5():
    """The case of the paper's numbers: lengths are rounded up, as no frame may be lost."""
    values, mask = jnp.zeros((1, 37, 1)), jnp.ones((1, 37), bool)
    found = []
    for level in range(1, 4):
        values, mask = merge_pairs(values, mask)
        found.append(mask.shape[1])
        assert pyramid_spans(jnp.ones((1, 37), bool), level).shape == (1, mask.shape[1], 2)
    assert found == [19, 10, 5]


def test_spans_end_where_the_row_ends():
    mask = jnp.arange(9) < jnp.array([[9], [5], [0]])
    spans = pyramid_spans(mask, 2).tolist()
    assert spans[0] == [[0, 4], [4, 8], [8, 9]]
    assert spans[1] == [[0, 4], [4, 5], [8, 8]]
    assert spans[2] == [[0, 0], [4, 4], [8, 8]]
