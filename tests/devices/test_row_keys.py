"""Every shard draws its rows of what one device draws for the whole batch."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.devices.row_keys import _places, shard_key
from attention_jax.errors import ConfigError

SHARDS = 4
DRAWS = {
    "bernoulli": lambda key, shape: jax.random.bernoulli(key, 0.7, shape),
    "normal": jax.random.normal,
    "derived": lambda key, shape: jax.random.uniform(
        jax.random.fold_in(jax.random.split(key, 3)[1], 4), shape
    ),
    "bits": lambda key, shape: jax.random.bits(key, shape, jnp.uint8),
    "half": lambda key, shape: jax.random.uniform(key, shape, jnp.bfloat16),
}


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("shape", [(16, 5, 7), (24,)])
def test_shards_draw_the_rows_of_the_whole(rng, draw, shape):
    whole, rows = draw(rng, shape), (shape[0] // SHARDS, *shape[1:])
    shards = [draw(shard_key(rng, jnp.int32(shard)), rows) for shard in range(SHARDS)]
    np.testing.assert_array_equal(np.concatenate(shards), whole)


@pytest.mark.parametrize("name", ["bernoulli", "normal", "derived"])
def test_shards_draw_the_rows_of_the_whole_with_x64(name):
    """Where a number takes 64 random bits."""
    with jax.enable_x64(True):
        key = jax.random.key(0)
        whole = DRAWS[name](key, (8, 3))
        shards = [DRAWS[name](shard_key(key, jnp.int32(shard)), (2, 3)) for shard in range(SHARDS)]
        assert whole.dtype == (bool if name == "bernoulli" else jnp.float64)
        np.testing.assert_array_equal(np.concatenate(shards), whole)


def test_rows_are_the_same_whatever_is_added_after_them(rng):
    draw = DRAWS["bernoulli"]
    np.testing.assert_array_equal(draw(rng, (20, 3)), draw(rng, (24, 3))[:20])


def test_numbers_without_axes_are_the_same_everywhere(rng):
    found = [jax.random.uniform(shard_key(rng, jnp.int32(shard))) for shard in range(SHARDS)]
    np.testing.assert_array_equal(found, jax.random.uniform(rng))


@pytest.mark.parametrize(("shard", "shape"), [(40000, (256, 16, 16)), (65535, (3 * 65537,))])
def test_places_go_beyond_32_bits(shard, shape):
    high, low = (np.asarray(word, np.uint64).ravel() for word in _places(jnp.uint32(shard), shape))
    size = int(np.prod(shape))
    expected = np.arange(shard * size, (shard + 1) * size, dtype=np.uint64)
    np.testing.assert_array_equal(high << np.uint64(32) | low, expected)


def test_other_keys_are_refused():
    with pytest.raises(ConfigError, match="expected jit where JAX_DEFAULT_PRNG_IMPL is not"):
        shard_key(jax.random.key(0, impl="rbg"), jnp.int32(0))
