"""Random keys by row: a device draws for its rows what one device draws for the whole batch.

Threefry computes every number of an array from the key and the number's place in the array. With
the batch as leading axis, the place of a device's first number is its share of the numbers before
it, so that a device finds its rows without drawing those of others. All randomness of models is
drawn with the batch as leading axis; what has no axes is the same on every device.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import random as extended
from jaxtyping import Array, UInt32

from attention_jax.errors import ConfigError

_THREEFRY = "threefry2x32"
_WORDS = 2  # of a threefry key; the one after them is the number of the device
_LOW = np.uint32(0xFFFF)
_DTYPES = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32}


def shard_key(rng: Array, shard: Array) -> Array:
    """Returns the key that draws the random numbers of one shard of an evenly split batch.

    Keys derived from it, by `split` or `fold_in`, draw those of the same rows.

    Args:
      rng: The key for the whole batch.
      shard: Number of the shard, from 0.

    Raises:
      ConfigError: If keys are of another kind than threefry's.
    """
    if str(jax.random.key_impl(rng)) != _THREEFRY:
        raise ConfigError(
            f"config.sharding.strategy: expected jit where JAX_DEFAULT_PRNG_IMPL is not "
            f"{_THREEFRY}, since other numbers cannot be drawn row by row"
        )
    words = [jax.random.key_data(rng), jnp.asarray(shard, jnp.uint32)[None]]
    return jax.random.wrap_key_data(jnp.concatenate(words), impl=_OF_SHARD)


def _random_bits(key: UInt32[Array, "3"], bit_width: int, shape: tuple[int, ...]) -> Array:
    # Threefry encrypts a counter (two words) with the key (two words); the counter of a number is
    # its place in the array, here that of the whole batch.
    first, second, shard = key
    counts = _places(shard if shape else jnp.uint32(0), shape)
    high, low = extended.threefry2x32_p.bind(
        *(jnp.broadcast_to(word, shape) for word in (first, second)), *counts
    )
    if bit_width == 64:
        return (high.astype(jnp.uint64) << 32) | low.astype(jnp.uint64)
    return (high ^ low).astype(_DTYPES[bit_width])


def _places(shard: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Returns the places of a shard's numbers in the array of all shards, as (high, low) words."""
    # Row-major places within the shard: the last axis has stride 1.
    size, places, stride = math.prod(shape), jnp.zeros(shape, jnp.uint32), 1
    for axis in reversed(range(len(shape))):
        places += jnp.uint32(stride) * jax.lax.broadcasted_iota(jnp.uint32, shape, axis)
        stride *= shape[axis]
    # shard * size in 64 bits without a type of 64 bits, for numbers of shards below 2^16: size is
    # multiplied in halves of 16 bits, and carries are found by overflow (a sum below a summand).
    upper, lower = shard * np.uint32(size >> 16), shard * (np.uint32(size) & _LOW)
    start = lower + (upper << 16)
    carried = (upper >> 16) + (start < lower).astype(jnp.uint32)
    low = start + places
    return carried + (low < start).astype(jnp.uint32), low


def _derived(function):
    """Lets `split` or `fold_in` of threefry keys carry the number of the device along."""

    def derive(key: UInt32[Array, "3"], argument) -> Array:
        words = function(key[:_WORDS], argument)
        shard = jnp.broadcast_to(key[_WORDS:], (*words.shape[:-1], 1))
        return jnp.concatenate([words, shard], axis=-1)

    return derive


def _seed(seed: Array) -> Array:
    raise NotImplementedError("a key of a shard is made by shard_key")


_OF_SHARD = extended.define_prng_impl(
    key_shape=(_WORDS + 1,),
    seed=_seed,
    split=_derived(extended.threefry_prng_impl.split),
    random_bits=_random_bits,
    fold_in=_derived(extended.threefry_prng_impl.fold_in),
    name=f"{_THREEFRY}_of_shard",
    tag="shard",
)
