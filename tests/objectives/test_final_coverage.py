"""The length of what is left, against NumPy, padding included."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.objectives import build_objective, final_coverage
from attention_jax.types import ModelOutput

TERM = final_coverage.Term()
SOURCE_LENGTHS, TARGET_LENGTHS = [3, 4, 2, 0], [2, 3, 0, 1]


def batch_of(source_lengths=SOURCE_LENGTHS, target_lengths=TARGET_LENGTHS):
    return {
        "source_mask": jnp.arange(4) < jnp.asarray(source_lengths)[:, None],
        "target_mask": jnp.arange(3) < jnp.asarray(target_lengths)[:, None],
    }


def total(coverage, batch):
    return TERM.total(ModelOutput(None, None, {"coverage": coverage}), batch)


def test_total_is_the_sum_of_the_norms_whatever_padding_holds(numpy_rng):
    left, batch = numpy_rng.normal(size=(4, 4, 5)), batch_of()
    left[0, 1] = 0.0
    real = np.asarray(batch["source_mask"] & (jnp.asarray(TARGET_LENGTHS)[:, None] > 0))
    expected = np.sqrt((left[real] ** 2).sum(-1)).sum()
    junk = jnp.asarray(np.where(real[..., None], left, np.nan), jnp.float32)
    value, gradient = jax.value_and_grad(total)(junk, batch)
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    norms = np.sqrt((left**2).sum(-1, keepdims=True))
    directions = np.where(norms > 0, left / np.where(norms > 0, norms, 1), 0)
    np.testing.assert_allclose(gradient, np.where(real[..., None], directions, 0), atol=1e-6)
    assert TERM.count(batch) == 6


def test_narrow_numbers_are_summed_in_float32():
    found = total(jnp.full((1, 4, 2), 1e-3, jnp.bfloat16), batch_of([4], [3]))
    assert found.dtype == jnp.float32
    np.testing.assert_allclose(found, 4 * np.sqrt(2e-6), rtol=1e-2)


def test_fields_are_found_in_the_config():
    term = build_objective({"final_coverage": {"weight": 0.5}}).terms["final_coverage"]
    assert term.weight == 0.5 and term.schedule.is_constant
