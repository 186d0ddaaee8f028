"""Dynamic quantization: products of integers as NumPy has them, and nothing else is touched."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.quantization import quantize, with_quantized_products

ROWS, DEPTH, WIDTH = 6, 40, 48


def rounded(array, axis):
    """What is left of an array of float64 in 255 steps, with a scale along an axis."""
    array = np.asarray(array, np.float64)
    scale = np.abs(array).max(axis=axis, keepdims=True) / 127
    return np.round(array / np.where(scale > 0, scale, 1)) * scale


def in_integers(function, weights, *arguments):
    return jax.jit(with_quantized_products(function, weights, *arguments))(*arguments)


@pytest.fixture
def drawn(numpy_rng):
    def draw(*shape):
        return numpy_rng.standard_normal(shape).astype(np.float32)

    return draw


def test_values_are_rounded_to_multiples_of_their_scale():
    found = quantize(jnp.array([[127.0, -63.4, 0.6], [0.0, 0.0, 0.0]]), (1,))
    np.testing.assert_array_equal(found.values, [[127, -63, 1], [0, 0, 0]])
    np.testing.assert_allclose(found.scale, [[1.0], [1 / 127]])
    assert found.values.dtype == jnp.int8


def heads(weights, x):
    return jnp.einsum("bke,end->bknd", x, weights.reshape(DEPTH, 4, 12)).reshape(2, 3, WIDTH)


PRODUCTS = {
    "rows by a matrix": lambda weights, x: x @ weights,
    "rows by a table of rows, as logits": lambda weights, x: x @ weights.T.copy().T,
    "several heads": heads,
    "a matrix by columns": lambda weights, x: (weights.T @ x.mT).mT,
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_those_of_rounded_numbers(name, drawn):
    x, matrix = drawn(2, 3, DEPTH), drawn(DEPTH, WIDTH)
    found = in_integers(PRODUCTS[name], matrix, x)
    np.testing.assert_allclose(found, rounded(x, -1) @ rounded(matrix, 0), rtol=1e-5, atol=1e-4)
    assert np.abs(found - x @ matrix).max() > 1e-3


def test_only_large_products_with_weights_are_of_integers(drawn):
    weights = {"narrow": drawn(DEPTH, 4), "vector": drawn(DEPTH), "table": drawn(9, DEPTH),
               "of_rows": drawn(ROWS, DEPTH, WIDTH)}  # fmt: skip
    x, memory = drawn(ROWS, DEPTH), drawn(ROWS, WIDTH, DEPTH)

    def step(weights, x, memory):
        scores = jnp.einsum("bd,bsd->bs", x, memory)
        embedded = weights["table"][jnp.array([3, 8])]
        of_rows = jnp.einsum("bd,bde->be", x, weights["of_rows"])  # a matrix for each row
        return x @ weights["narrow"], x @ weights["vector"], scores, embedded, of_rows

    for one, other in zip(in_integers(step, weights, x, memory), step(weights, x, memory),
                          strict=True):  # fmt: skip
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
    lowered = jax.jit(with_quantized_products(step, weights, x, memory)).lower(x, memory)
    assert "i8" not in lowered.as_text()


def test_padding_of_zeros_stays_zero_and_types_stay(drawn):
    x = jnp.zeros((ROWS, DEPTH), jnp.bfloat16)
    found = in_integers(lambda w, x: x @ w, drawn(DEPTH, WIDTH).astype(jnp.bfloat16), x)
    assert found.dtype == jnp.bfloat16 and not np.any(found)


def test_what_a_function_returns_keeps_its_structure(drawn):
    matrix, state = drawn(DEPTH, WIDTH), {"a": drawn(ROWS, DEPTH), "b": jnp.arange(3)}

    def step(weights, state, tokens):
        return {"next": (state["b"] + tokens, weights), "y": [state["a"] @ weights]}

    arguments = state, jnp.arange(3)
    found = in_integers(step, matrix, *arguments)
    assert jax.tree.structure(found) == jax.tree.structure(step(matrix, *arguments))
    np.testing.assert_array_equal(found["next"][0], [0, 2, 4])
    np.testing.assert_array_equal(found["next"][1], matrix)
