"""Softmax readout: the memory of its gradient, and its bias inside the product of known targets."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.readout import ReadoutSizes, Step
from attention_jax.layers.readouts import softmax

ROWS, STEPS, DEPTH, VOCABULARY = 16, 32, 8, 2000
LOGITS = ROWS * STEPS * VOCABULARY * 4  # bytes


@pytest.fixture
def readout():
    return softmax.build(softmax.Config(), ReadoutSizes(VOCABULARY, DEPTH, DEPTH))


@pytest.fixture
def drawn(numpy_rng):
    def draw(*shape):
        return jnp.asarray(numpy_rng.standard_normal(shape), jnp.float32)

    return draw


def as_for_users(function, *arguments):
    """Compiled as it is for users: tests leave out most optimizations."""
    jax.config.update("jax_disable_most_optimizations", False)
    try:
        return jax.jit(function).lower(*arguments).compile()
    finally:
        jax.config.update("jax_disable_most_optimizations", True)


def test_all_steps_have_the_distribution_of_each(readout, drawn):
    params = {"output": drawn(VOCABULARY, DEPTH), "output_bias": 3 * drawn(VOCABULARY)}
    step = Step(drawn(2, 3, DEPTH), None, drawn(VOCABULARY, DEPTH))
    found, _ = readout.run(params, step, jnp.zeros((2, 3), int), jnp.ones((2, 3), bool))
    expected = np.float64(step.features) @ params["output"].T + params["output_bias"]
    np.testing.assert_allclose(found.logits, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(readout.predict(params, step).logits, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_gradient_holds_the_logits_once(readout, drawn, dtype):
    """Loss and accuracy once kept the product without the bias beside them."""
    params = {"output": drawn(VOCABULARY, DEPTH), "output_bias": drawn(VOCABULARY)}
    features, targets = drawn(ROWS, STEPS, DEPTH), jnp.zeros((ROWS, STEPS), int)
    mask = jnp.ones((ROWS, STEPS), bool)

    def loss(params, features):
        params, features = jax.tree.map(lambda leaf: leaf.astype(dtype), (params, features))
        step = Step(features, None, params["output"])
        predictions, _ = readout.run(params, step, targets, mask)
        return predictions.cross_entropy(targets, mask).sum(), predictions.is_best(targets).sum()

    compiled = as_for_users(jax.value_and_grad(loss, (0, 1), has_aux=True), params, features)
    temporaries = compiled.memory_analysis().temp_size_in_bytes
    assert LOGITS <= temporaries < 1.3 * LOGITS
    ((value, _), _), expected = compiled(params, features), jax.jit(loss)(params, features)[0]
    np.testing.assert_allclose(value, expected, rtol=1e-4)
    assert jnp.isfinite(value)
