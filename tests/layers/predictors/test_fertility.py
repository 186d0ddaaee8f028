"""The prediction of fertility against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.layers.predictors.fertility import Config, build, predict_fertility


def test_prediction_equals_the_equations(numpy_rng):
    params = {
        name: numpy_rng.normal(size=parameter.shape)
        for name, parameter in build(Config(hidden_dim=3), 5).parameters.items()
    }
    annotations = numpy_rng.normal(size=(2, 4, 5))
    hidden = np.tanh(annotations @ params["hidden"] + params["hidden_bias"])
    f32 = lambda array: jnp.asarray(array, jnp.float32)  # noqa: E731
    found = predict_fertility({name: f32(leaf) for name, leaf in params.items()}, f32(annotations))
    for column, leaf in enumerate(found):
        expected = hidden @ params["output"][:, column] + params["output_bias"][column]
        np.testing.assert_allclose(leaf, expected, rtol=1e-4, atol=1e-5)
    narrow = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), f32(annotations))
    assert predict_fertility(jax.tree.map(f32, params), narrow).mean.dtype == jnp.float32
