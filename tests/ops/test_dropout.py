"""Dropout as factors: what is kept is scaled, so that the mean stays what it was."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.types import Call


@pytest.mark.parametrize("rate", [0.2, 0.5])
def test_what_is_kept_is_rescaled(rng, rate):
    factors = dropout_factors(Call(True, rng), rate, (100, 100), jnp.float32)
    assert dropout_factors(Call(True, rng), rate, (2,), jnp.bfloat16).dtype == jnp.bfloat16
    np.testing.assert_allclose(np.unique(factors), [0, 1 / (1 - rate)], rtol=1e-6)
    assert float(factors.mean()) == pytest.approx(1.0, abs=0.03)  # three standard deviations
    np.testing.assert_array_equal(scale(jnp.full((100, 100), 3.0), factors), 3.0 * factors)


def test_nothing_is_dropped_in_evaluation_or_at_rate_0(rng):
    assert dropout_factors(Call(False, rng), 0.5, (3,), jnp.float32) is None
    assert dropout_factors(Call(True), 0.0, (3,), jnp.float32) is None
    values = jnp.arange(3.0)
    assert scale(values, None) is values


def test_dropout_needs_a_key():
    with pytest.raises(ValueError, match="rng: expected a key"):
        dropout_factors(Call(True), 0.5, (3,), jnp.float32)


def test_places_draw_with_keys_of_their_own(rng):
    assert Call().fold(1).rng is None
    one, other = (jax.random.uniform(Call(True, rng).fold(number).rng) for number in (1, 2))
    assert one != other
