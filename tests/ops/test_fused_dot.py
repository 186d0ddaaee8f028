"""The fused path of dot products equals the open one, in blocks and by the library."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops import fused_dot
from attention_jax.ops.normalizers import masked_softmax
from attention_jax.ops.scores import scaled_dot_scores

B, T, S, D = 2, 7, 5, 4


def plain(query, keys, values, mask):
    return masked_softmax(scaled_dot_scores(query, keys), mask) @ values


def arrays(value_dim=D):
    rng = np.random.default_rng(0)
    query, keys, values = (
        jnp.asarray(rng.normal(size=(B, *shape)), jnp.float32)
        for shape in ((T, D), (S, D), (S, value_dim))
    )
    mask = jnp.asarray(rng.random((B, T, S)) < 0.6).at[1, 2].set(False).at[0].set(True)
    return query, keys, values, mask


def with_gradients(function, *arguments):
    def loss(*floats):
        context = function(*floats, arguments[-1])
        return jnp.sin(context).sum(), context

    return jax.jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))(*arguments[:-1])


@pytest.mark.parametrize("block", [2, 3, 128])
def test_blocks_equal_the_open_path(monkeypatch, block):
    monkeypatch.setattr(fused_dot, "_BLOCK", block)
    check(fused_dot._in_blocks, *arrays(3))


def test_library_equals_the_open_path():
    check(fused_dot._by_library, *arrays())


@pytest.mark.parametrize("value_dim", [D, 3])
def test_chosen_path_equals_the_open_path(value_dim):
    check(fused_dot.fused_dot_context, *arrays(value_dim))


def check(function, *arguments):
    found, expected = with_gradients(function, *arguments), with_gradients(plain, *arguments)
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert np.all(np.asarray(found[0][1])[1, 2] == 0)  # a row that may attend to nothing
