import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.lookup import look_up


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
