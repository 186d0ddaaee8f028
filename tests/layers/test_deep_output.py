"""Deep output, logits and dropout factors against their formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.deep_output import READOUTS, deep_output, deep_parameters
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.layers.readouts.softmax import logits_of


@pytest.mark.parametrize("readout", READOUTS)
def test_deep_output(readout, numpy_rng):
    tree = deep_parameters(readout, 4, 3, 2, 5)
    params = draw(tree, jax.random.key(0), Initialization("uniform", scale=1.0))
    state, embedded, context = (numpy_rng.normal(size=(2, 6, depth)) for depth in (3, 2, 5))
    arrays = [jnp.asarray(array, jnp.float32) for array in (state, embedded, context)]
    kernels = {name: np.asarray(leaf, float) for name, leaf in params.items()}
    hidden = state @ kernels["state"] + embedded @ kernels["embedding"]
    hidden = hidden + context @ kernels["context"] + kernels["bias"]
    expected = (
        np.tanh(hidden) if readout == "tanh" else np.maximum(hidden[..., ::2], hidden[..., 1::2])
    )
    found = deep_output(readout, params, *arrays)
    assert found.shape == (2, 6, 4)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_logits_are_float32_whatever_the_features(numpy_rng):
    features, table, bias = (numpy_rng.normal(size=shape) for shape in ((2, 3), (5, 3), (5,)))
    logits = logits_of(*(jnp.asarray(array, jnp.bfloat16) for array in (features, table, bias)))
    assert logits.dtype == jnp.float32
    np.testing.assert_allclose(logits, features @ table.T + bias, atol=0.1)
