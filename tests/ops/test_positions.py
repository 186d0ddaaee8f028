"""Sinusoidal positions."""

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.positions import sinusoidal_positions


@pytest.mark.parametrize("depth", [1, 6, 7])
def test_sinusoidal_positions_equal_their_definition(depth):
    found = sinusoidal_positions(jnp.asarray([[0, 3], [50, 1]]), depth)
    assert found.shape == (2, 2, depth) and found.dtype == jnp.float32
    for index, position in np.ndenumerate([[0, 3], [50, 1]]):
        for channel in range(depth):
            angle = position / 10000 ** (2 * (channel // 2) / depth)
            expected = np.cos(angle) if channel % 2 else np.sin(angle)
            np.testing.assert_allclose(found[*index, channel], expected, atol=1e-5)
