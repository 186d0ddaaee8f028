import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.products import add_bias, multiply_rows


@pytest.mark.parametrize("axes", [(), (3,), (3, 2), (2, 3, 2), (0, 3)])
def test_each_vector_is_multiplied(axes, numpy_rng):
    vectors, kernel = numpy_rng.normal(size=(*axes, 5)), numpy_rng.normal(size=(5, 4))
    products = multiply_rows(jnp.asarray(vectors, jnp.float32), jnp.asarray(kernel, jnp.float32))
    assert products.shape == (*axes, 4)
    np.testing.assert_allclose(products, np.einsum("...d,df->...f", vectors, kernel), atol=1e-5)


def test_gradients_are_those_of_the_sum_over_all_vectors(numpy_rng):
    vectors, kernel = numpy_rng.normal(size=(3, 2, 5)), numpy_rng.normal(size=(5, 4))
    factors = numpy_rng.normal(size=(3, 2, 4))

    def total(vectors, kernel):
        return (factors.astype(np.float32) * multiply_rows(vectors, kernel)).sum()

    arguments = jnp.asarray(vectors, jnp.float32), jnp.asarray(kernel, jnp.float32)
    of_vectors, of_kernel = jax.grad(total, (0, 1))(*arguments)
    np.testing.assert_allclose(of_vectors, factors @ kernel.T, atol=1e-5)
    np.testing.assert_allclose(of_kernel, np.einsum("btd,btf->df", vectors, factors), atol=1e-5)


def test_a_product_of_the_gradient_has_two_dimensions():
    """Of three, XLA on a CPU makes one that takes twice as long."""
    vectors, kernel = jnp.ones((3, 2, 5)), jnp.ones((5, 4))
    gradient = jax.grad(lambda kernel: multiply_rows(vectors, kernel).sum())
    text = jax.jit(gradient).lower(kernel).as_text()
    products = [line for line in text.splitlines() if "dot_general" in line]
    assert products and all("x3x2x" not in line and "<3x2x" not in line for line in products)


def test_vectors_without_depth_give_zeros():
    assert multiply_rows(jnp.ones((3, 2, 0)), jnp.ones((0, 4))).tolist() == [[[0] * 4] * 2] * 3


@pytest.mark.parametrize("shape", [(2,), (3, 2)])
def test_the_same_is_added_to_all_vectors(shape, numpy_rng):
    vectors, bias = numpy_rng.normal(size=(4, 3, 2)), numpy_rng.normal(size=shape)
    found = add_bias(jnp.asarray(vectors, jnp.float32), jnp.asarray(bias, jnp.float32))
    np.testing.assert_allclose(found, vectors + bias, rtol=1e-6)


def test_the_gradient_of_a_bias_is_summed_in_float32():
    """In bfloat16, 256 + 1 = 256."""
    vectors, bias = jnp.zeros((64, 32, 2), jnp.bfloat16), jnp.ones(2, jnp.bfloat16)
    total = jax.jit(jax.grad(lambda bias: add_bias(vectors, bias).astype(jnp.float32).sum()))
    assert add_bias(vectors, bias).dtype == total(bias).dtype == jnp.bfloat16
    assert total(bias).tolist() == [64 * 32] * 2
