"""The two coverage objectives against hand-computed cases and NumPy, padding included."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.objectives import build_objective, coverage_loss, coverage_penalty
from attention_jax.types import AttentionOutput, ModelOutput, SpecialIds

TERMS = {"coverage_penalty": coverage_penalty.Term(), "coverage_loss": coverage_loss.Term()}
every_term = pytest.mark.parametrize("name", TERMS)


def output_of(weights):
    return ModelOutput(None, AttentionOutput(None, weights, None))


def batch_of(target_lengths, source_lengths, size_t, size_s):
    return {
        "target_mask": jnp.arange(size_t) < jnp.asarray(target_lengths)[:, None],
        "source_mask": jnp.arange(size_s) < jnp.asarray(source_lengths)[:, None],
    }


def reference(name, weights):
    """Loops over one sentence without padding, in float64."""
    weights, total = np.asarray(weights, np.float64), 0.0
    if name == "coverage_penalty":
        for slot in range(weights.shape[1]):
            total += (1 - sum(weights[:, slot])) ** 2
        return total
    for step in range(len(weights)):
        for slot in range(weights.shape[1]):
            total += min(weights[step, slot], sum(weights[:step, slot]))
    return total


@pytest.mark.parametrize(
    ("name", "weights", "expected"),
    [
        # Totals 1.4, 0.4, 0.6 and 0.6.
        ("coverage_penalty", [[0.7, 0.1, 0.1, 0.1], [0.7, 0.3, 0.5, 0.5]], 0.84),
        # Nothing before the first word; then 0.4, 0.1 and 0.2.
        ("coverage_loss", [[0.5, 0.3, 0.2], [0.4, 0.1, 0.5]], 0.7),
    ],
)
def test_golden(name, weights, expected):
    weights = jnp.asarray([weights])
    batch = batch_of([2], [weights.shape[2]], *weights.shape[1:])
    np.testing.assert_allclose(TERMS[name].total(output_of(weights), batch), expected, rtol=1e-6)
    assert TERMS[name].count(batch) == 2


def test_coverage_is_of_the_steps_before_and_not_of_the_step_itself():
    """Attention that never moves costs one a word but for the first; one that moves on, nothing."""
    batch, loss = batch_of([2], [2], 2, 2), TERMS["coverage_loss"]
    stays, moves_on = jnp.asarray([[[1.0, 0.0]] * 2]), jnp.eye(2)[None]
    assert loss.total(output_of(stays), batch) / loss.count(batch) == 0.5
    assert loss.total(output_of(moves_on), batch) == 0.0


def test_boundaries_need_not_be_attended_to():
    """Totals 1.4, 0.4, 0.6 and, of EOS, 0.6; as mantis has it between BOS and EOS."""
    weights = jnp.asarray([[[0.7, 0.1, 0.1, 0.1], [0.7, 0.3, 0.5, 0.5]]] * 2)
    batch = batch_of([2, 2], [4, 4], 2, 4)
    batch["source"] = jnp.asarray([[5, 6, 7, SpecialIds.EOS], [SpecialIds.BOS, 6, 7, 2]])
    term = coverage_penalty.Term(with_boundaries=False)
    expected = (0.16 + 0.36 + 0.16) + (0.36 + 0.16)
    np.testing.assert_allclose(term.total(output_of(weights), batch), expected, rtol=1e-6)
    everything = coverage_penalty.Term().total(output_of(weights), batch)
    np.testing.assert_allclose(everything, 2 * 0.84, rtol=1e-6)
    gradient = jax.grad(lambda weights: term.total(output_of(weights), batch))(weights)
    assert not gradient[:, :, 3].any() and not gradient[1, :, 0].any()
    assert gradient[0, :, :3].all()


@every_term
def test_equals_the_sum_over_sentences_whatever_padding_holds(name, numpy_rng):
    target_lengths, source_lengths = [4, 2, 0, 1], [3, 5, 0, 2]
    batch = batch_of(target_lengths, source_lengths, 4, 5)
    weights = numpy_rng.dirichlet(np.ones(5), (4, 4)).astype(np.float32)
    weights = np.where(batch["source_mask"][:, None], weights, 0)
    expected = sum(
        reference(name, row[:length, :size])
        for row, length, size in zip(weights, target_lengths, source_lengths, strict=True)
    )
    real = np.einsum("bt,bs->bts", batch["target_mask"], batch["source_mask"])
    junk = np.where(real, weights, np.nan).astype(np.float32)

    def total(weights):
        return TERMS[name].total(output_of(weights), batch)

    value, gradient = jax.value_and_grad(total)(jnp.asarray(junk))
    np.testing.assert_allclose(value, expected, rtol=1e-5)
    assert np.all(np.asarray(gradient)[~real] == 0) and np.abs(gradient[real]).max() > 0


@every_term
def test_gradient_agrees_with_finite_differences(name, numpy_rng):
    weights = numpy_rng.dirichlet(np.ones(4), 3)
    batch = batch_of([3], [4], 3, 4)
    gradient = jax.grad(lambda w: TERMS[name].total(output_of(w), batch))(
        jnp.asarray(weights, jnp.float32)[None]
    )
    direction, step = numpy_rng.normal(size=(3, 4)), 1e-6
    ends = [reference(name, weights + sign * step * direction) for sign in (1, -1)]
    expected = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose((gradient[0] * direction).sum(), expected, rtol=1e-3)


@every_term
def test_every_field_is_found_in_the_config(name):
    term = build_objective({name: {"weight": 0.5, "schedule": {"start_steps": 3}}}).terms[name]
    assert term == dataclasses.replace(
        TERMS[name], weight=0.5, schedule=dataclasses.replace(term.schedule, start_steps=3)
    )
    assert "alignment" in term.needs
