import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.lookup import look_up, take_slots
from tests.derivatives import HESSIAN_VECTOR_PRODUCTS, hessian_vector_product


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_rows_are_those_of_the_ids(dtype, numpy_rng):
    table = jnp.asarray(numpy_rng.normal(size=(5, 3)), dtype)
    ids = jnp.asarray(numpy_rng.integers(0, 5, (2, 4)))
    rows = look_up(table, ids)
    assert rows.dtype == dtype
    np.testing.assert_array_equal(rows, np.asarray(table)[np.asarray(ids)])


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_a_frequent_row_is_given_all_of_its_gradients(dtype):
    """In bfloat16, 256 + 1 = 256."""
    ids = jnp.where(jnp.arange(2003) < 2000, 1, jnp.arange(2003) % 3)
    table = jnp.zeros((4, 2), dtype)
    gradient = jax.jit(jax.grad(lambda table: look_up(table, ids).astype(jnp.float32).sum()))(table)
    assert gradient.dtype == dtype
    count = np.bincount(ids, minlength=4)
    assert count.max() >= 2000 and count[3] == 0
    np.testing.assert_allclose(gradient.astype(jnp.float32)[:, 0], count, rtol=2**-8)


def test_heads_have_tables_of_their_own():
    tables = jnp.arange(12, dtype=jnp.bfloat16).reshape(2, 3, 2)
    ids = jnp.asarray([2, 0, 2])

    def total(tables):
        return jax.vmap(look_up, in_axes=(0, None))(tables, ids).astype(jnp.float32).sum()

    gradient = np.asarray(jax.grad(total)(tables), np.float32)
    np.testing.assert_array_equal(gradient[..., 0], [[1, 0, 2]] * 2)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_slots_are_taken_and_given_all_of_their_gradients(dtype, numpy_rng):
    """One memory is shared by three beams."""
    rows = jnp.asarray(numpy_rng.normal(size=(2, 1, 4, 3)), dtype)
    slots = numpy_rng.integers(0, 3, (2, 3, 1000))

    def total(rows):
        taken = take_slots(rows, jnp.asarray(slots))
        return taken.astype(jnp.float32).sum(), taken

    gradient, taken = jax.jit(jax.grad(total, has_aux=True))(rows)
    expected = np.take_along_axis(np.asarray(rows), slots[..., None], axis=-2)
    assert taken.dtype == gradient.dtype == dtype
    np.testing.assert_array_equal(taken, expected)
    counts = np.stack([np.bincount(of_one.ravel(), minlength=4) for of_one in slots])
    assert counts.max() > 512 and np.all(counts[:, 3] == 0)
    np.testing.assert_allclose(gradient[:, 0, :, 0].astype(jnp.float32), counts, rtol=2**-8)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_second_derivatives_and_forward_mode(dtype):
    """Of the cube of each row that is looked up: 6 x times the direction for each look-up."""
    ids, table = jnp.asarray([0, 2, 2] + [1] * 600), jnp.full((3, 2), 0.5, dtype)

    def total(table):
        return (look_up(table, ids).astype(jnp.float32) ** 3).sum()

    ones, counts = jnp.ones_like(table), np.asarray([[1], [600], [2]])
    np.testing.assert_allclose(jax.jvp(total, (table,), (ones,))[1], 0.75 * 603 * 2, rtol=1e-3)
    for mode in HESSIAN_VECTOR_PRODUCTS:
        product = hessian_vector_product(mode, total, table, ones)
        assert product.dtype == dtype
        np.testing.assert_allclose(
            product.astype(jnp.float32), np.broadcast_to(3.0 * counts, (3, 2)), rtol=2**-7
        )
