"""Heads that talk and dropped weights: what they change, and what they leave to fused attention."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.encoder import sequence
from attention_jax.ops import fused_dot
from attention_jax.ops.dropout import dropout_factors
from attention_jax.types import Call
from tests.refined_heads import B, D, H, T, built, drawn


@pytest.mark.parametrize("refinements", [{}, {"talking_heads": {}}], ids=["plain", "talking"])
def test_dropout_and_mixing_change_contexts_and_no_weights(refinements):
    """Weights are mixed first and dropped then, both on the way to the context alone."""
    _, mechanism = built(dropout=0.5, refinements=refinements)
    params, x, mask, allowed = drawn(mechanism, "causal")
    single = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), params)
    memory = mechanism.make_memory(
        single, sequence(jnp.asarray(x, jnp.float32), jnp.asarray(mask))
    )
    rng = jax.random.key(0)

    @functools.partial(jax.jit, static_argnums=0)
    def attend(train):
        query = jnp.asarray(x, jnp.float32)
        call = dict(mask=jnp.asarray(allowed), call=Call(train, rng))
        return mechanism.attend(single, query, memory, **call)[0]

    whole, dropped = attend(False), attend(True)
    heads = np.asarray(dropped.aux["head_weights"], float)
    np.testing.assert_array_equal(heads, whole.aux["head_weights"])
    np.testing.assert_array_equal(dropped.weights, whole.weights)
    assert heads.min() >= 0
    np.testing.assert_allclose(heads.sum(-1), 1, rtol=1e-5)

    mixing = np.eye(H) + params.get("mixed_weights", 0.0)
    averaged, expected = np.einsum("hg,btgs->bths", mixing, heads), np.zeros((B, T, D))
    for h, key in enumerate(jax.random.split(rng, H)):
        factors = dropout_factors(Call(True, key), 0.5, (B, T, T), jnp.float32)
        values = np.where(mask[..., None], x @ params["value_projection"][h], 0)
        expected += averaged[:, :, h] * factors @ values @ params["output_kernel"][h]
    np.testing.assert_allclose(dropped.context, expected, rtol=1e-4, atol=1e-5)
    assert not np.allclose(dropped.context, whole.context, atol=0.1)


def test_dropout_forbids_the_fused_path_in_training_only(monkeypatch):
    _, mechanism = built("self", dropout=0.5)
    taken = watched_fused_path(monkeypatch)

    def attend(params, x, mask, train):
        memory = mechanism.make_memory(params, sequence(x, mask))
        call = Call(train, jax.random.key(0))
        return mechanism.attend(params, x, memory, call=call, is_fused=True)[0]

    params, x, mask, _ = drawn(mechanism, "self")
    for train in (True, False):
        assert not taken
        jax.eval_shape(functools.partial(attend, train=train), params, x, mask)
    assert taken


@pytest.mark.parametrize("fields", [{}, {"mixes_scores": False}, {"mixes_weights": False}])
def test_talking_heads_have_no_fused_path(fields, monkeypatch):
    _, mechanism = built("self", refinements={"talking_heads": fields})
    taken = watched_fused_path(monkeypatch)
    params, x, mask, _ = drawn(mechanism, "self")

    def attend(params, x, mask):
        memory = mechanism.make_memory(params, sequence(x, mask))
        return mechanism.attend(params, x, memory, is_fused=True)[0]

    jax.eval_shape(attend, params, x, mask)
    assert not taken


def watched_fused_path(monkeypatch):
    """Returns a list that grows when contexts come from the fused path."""
    context, taken = fused_dot.fused_dot_context, []

    def fused(*arguments):
        taken.append(True)
        return context(*arguments)

    monkeypatch.setattr(fused_dot, "fused_dot_context", fused)
    return taken
