"""Emissions: the equations in NumPy, in chunks as at once, in memory that does not grow."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops import emissions as module
from attention_jax.ops.emissions import (
    Emissions,
    emission_log_probs,
    emission_normalizers,
    mixture_log_probs,
)
from attention_jax.ops.lattices import NEVER
from attention_jax.types import SpecialIds
from tests.quick import quick_jit

B, T, S, D, V = 2, 3, 5, 4, 6


def drawn(slots=S, queries=T, vocabulary=V):
    rng = np.random.default_rng(0)
    shapes = dict(query=(B, queries, D), annotations=(B, 1, slots, D), table=(vocabulary, D),
                  bias=(vocabulary,))  # fmt: skip
    floats = {name: jnp.asarray(rng.normal(size=shape), float) for name, shape in shapes.items()}
    may_end = jnp.broadcast_to(jnp.arange(slots) == slots - 1, (B, 1, slots))
    weights = jnp.log(jnp.asarray(rng.dirichlet(np.ones(slots), size=(B, queries)), float))
    tokens = jnp.asarray(rng.integers(0, vocabulary, size=(B, queries)))
    return Emissions(**floats, may_end=may_end), weights, tokens.at[0, 0].set(SpecialIds.EOS)


def everything(emissions, weights, tokens):
    normalizers = emission_normalizers(emissions)
    log_probs = emission_log_probs(emissions, normalizers, tokens)
    return log_probs, mixture_log_probs(emissions, normalizers, weights)


@pytest.fixture(params=[1, 2, S], ids=lambda size: f"{size} at a time")
def chunked(request, monkeypatch):
    """So many slots are computed at a time."""
    monkeypatch.setattr(module, "MOST_LOGITS", B * T * max(V, D) * request.param)


def test_equations(chunked):
    """As softmax(table tanh(annotation + query) + bias), without EOS but at the last slot."""
    emissions, weights, tokens = drawn()
    arrays = {name: np.asarray(value, float) for name, value in vars(emissions).items()}
    hidden = np.tanh(arrays["query"][..., None, :] + arrays["annotations"])
    logits = hidden @ arrays["table"].T + arrays["bias"]
    logits[..., :-1, SpecialIds.EOS] = -np.inf
    probs = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    log_probs, mixture = quick_jit(everything)(emissions, weights, tokens)
    expected = np.take_along_axis(probs, np.asarray(tokens)[..., None, None], -1)[..., 0]
    np.testing.assert_allclose(np.exp(log_probs), expected, rtol=1e-4, atol=1e-7)
    assert log_probs[0, 0, 0] < NEVER / 2
    expected = np.einsum("bts,btsv->btv", np.exp(weights), probs)
    np.testing.assert_allclose(np.exp(mixture), expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.exp(mixture).sum(-1), 1.0, rtol=1e-5)


def losses(emissions, weights, tokens):
    log_probs, mixture = everything(emissions, weights, tokens)
    return (jnp.maximum(log_probs, -50.0) * jnp.cos(jnp.arange(S))).sum() + mixture.mean() ** 2


def derivatives(arguments):
    emissions, weights, tokens = arguments
    floats = {name: value for name, value in vars(emissions).items() if name != "may_end"}

    def loss(floats, weights):
        return losses(dataclasses.replace(emissions, **floats), weights, tokens)

    slopes = jax.tree.map(jnp.cos, (floats, weights))
    gradient = jax.grad(loss, (0, 1))
    return gradient(floats, weights), jax.jvp(gradient, (floats, weights), slopes)[1]


def test_derivatives_are_those_of_all_slots_at_once(monkeypatch):
    """First and second ones."""
    expected = quick_jit(derivatives)(drawn())
    monkeypatch.setattr(module, "MOST_LOGITS", B * T * max(V, D) * 2)
    found = quick_jit(lambda arguments: derivatives(arguments))(drawn())
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)
        assert np.abs(other).max() > 1e-4


def temporaries(slots):
    """Bytes that the gradient of a loss with label smoothing takes beside its arguments."""

    def loss(emissions, weights, tokens):
        log_probs, mixture = everything(emissions, weights, tokens)
        return log_probs.sum() + mixture.sum()

    gradient = jax.jit(jax.grad(loss, allow_int=True))
    arguments = drawn(slots, queries=8, vocabulary=64)
    return gradient.lower(*arguments).compile().memory_analysis().temp_size_in_bytes


def test_memory_does_not_grow_with_the_slots(monkeypatch):
    """As it does where all of them are computed at once."""
    logits = 4 * B * 8 * 64  # bytes of one slot's
    grown = temporaries(64) - temporaries(16)
    assert grown > 48 * logits
    monkeypatch.setattr(module, "MOST_LOGITS", 2 * B * 8 * 64)
    assert temporaries(64) - temporaries(16) < grown / 10
