"""The KV cache: what is written stands where it belongs, and is read as it was written."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers import kv_cache
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.parameters import Initialization, draw

B, N, D = 2, 5, 8


def test_an_entry_is_put_in_its_place_and_nowhere_else():
    entry = jnp.arange(6.0).reshape(2, 1, 3)
    for size in (1, 2):
        found = kv_cache.put(jnp.zeros((2, size, 3)), entry, jnp.asarray(size - 1))
        np.testing.assert_array_equal(found[:, -1:], entry)
        assert found.shape == (2, size, 3) and not found[:, :-1].any()


@pytest.mark.parametrize("num_memory_heads", [1, 2])
def test_one_position_after_the_other_equals_all_behind_a_causal_mask(numpy_rng, num_memory_heads):
    heads = {"num_heads": 2, "head_dim": 4, "num_memory_heads": num_memory_heads}
    mechanism = build_mechanism(MECHANISMS.config("multi_head")(**heads), D, D, D, place="causal")
    params = draw(mechanism.parameters, jax.random.key(0), Initialization())
    vectors = jnp.asarray(numpy_rng.normal(size=(B, N, D)), jnp.float32)
    memory = mechanism.make_memory(params, sequence(vectors, jnp.ones((B, N), bool)))
    causal = jnp.tril(jnp.ones((N, N), bool))
    expected, _ = mechanism.attend(params, vectors, memory, mask=causal)

    @jax.jit
    def contexts(params, vectors):
        cache = kv_cache.empty_cache(mechanism, params, (B, N, D), jnp.float32)
        found = []
        for index in range(N):
            here, position = vectors[:, index : index + 1], jnp.asarray([index])
            cache = kv_cache.write(mechanism, params, cache, here, position)
            output, _ = kv_cache.attend_to_one(mechanism, params, here, cache, {}, position)
            found.append(output.context)
        return jnp.concatenate(found, axis=1)

    np.testing.assert_allclose(contexts(params, vectors), expected.context, rtol=1e-5, atol=1e-6)
