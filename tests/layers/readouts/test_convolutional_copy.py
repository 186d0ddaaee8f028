"""Convolutional copy attention: against NumPy, what of it learns, and what it needs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.errors import ConfigError
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.mechanisms import convolutional
from attention_jax.layers.readout import ReadoutSizes, Step
from attention_jax.layers.readouts import convolutional_copy
from attention_jax.types import AttentionOutput
from tests.conformance.test_rows_alone import batch
from tests.models.test_encoders_with_decoders import D, V, build, with_readout
from tests.parameters import drawn
from tests.quick import quick_jit

X, CHANNELS, WIDTH = 2, 3, 3


def filtered(features, kernel):
    """Cross-correlation, place by place, with zeros outside."""
    found, slots = np.zeros(features.shape[:-1]), features.shape[-2]
    for slot, place in np.ndindex(slots, WIDTH):
        seen = slot + place - (WIDTH - 1) // 2
        if 0 <= seen < slots:
            found[..., slot] += features[..., seen, :] @ kernel[place]
    return found


def expected(params, inputs, features, words):
    """The distribution of each next token in float64, `B T V + X`."""
    copying, can = params["copying"], (words > 0)[:, None]
    scores = np.exp(filtered(features, copying["score"])) * can
    gates = filtered(features, copying["gate"]) + copying["gate_bias"]
    gate = 1 / (1 + np.exp(-np.where(can, gates, -np.inf).max(-1, keepdims=True)))
    shares = gate * scores / scores.sum(-1, keepdims=True)
    logits = np.exp(inputs @ params["output"].T + params["output_bias"])
    found = np.zeros((*gate.shape[:-1], V + X))
    found[..., :V] = (1 - gate) * logits / logits.sum(-1, keepdims=True)
    for row, slot in zip(*np.nonzero(words), strict=True):
        found[row, :, words[row, slot]] += shares[row, :, slot]
    return found


def test_against_numpy():
    rng, (rows, length, slots) = np.random.default_rng(2), (2, 3, 4)
    attention = convolutional.Config(channels=CHANNELS, hidden_width=2, feature_width=2)
    mechanism = build_mechanism(attention, D, D, D)
    sizes = ReadoutSizes(
        V, D, D, memory_dim=D, mechanism=mechanism, attention=attention, slot_symbols=V
    )
    readout = convolutional_copy.build(convolutional_copy.Config(width=WIDTH), sizes)
    params = jax.tree.map(lambda part: rng.normal(size=part.shape), dict(readout.parameters))
    inputs = rng.normal(size=(rows, length, D))
    features = rng.normal(size=(rows, length, slots, CHANNELS))
    words = np.array([[V, 4, V, 0], [5, V + 1, V, 0]])
    given = {"extended_source": jnp.asarray(words), "unknown_words": jnp.ones((rows, X), bool)}
    encoded = Encoded(jnp.zeros((rows, slots, D)), jnp.ones((rows, slots), bool))
    source = jax.tree.map(lambda leaf: leaf[:, None], readout.prepare(params, encoded, given))
    weights = jnp.full((rows, length, slots), 1 / slots)  # which copying does not read
    aux = {"features": jnp.asarray(features)}
    read = AttentionOutput(jnp.zeros((rows, length, D)), weights, weights, aux)
    step = Step(jnp.asarray(inputs), read, jnp.zeros((V, D)), source)
    found = readout.predict(jax.tree.map(jnp.asarray, params), step)
    reference = expected(params, inputs, features, words)
    np.testing.assert_allclose(np.exp(found.log_probs()), reference, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(reference.sum(-1), 1, atol=1e-12)


def test_every_parameter_learns_by_what_is_copied():
    model = with_readout("convolutional_copy")
    given, params = batch(), drawn(model, 1)

    def loss(params):
        predictions = model.apply(params, given).predictions
        return predictions.cross_entropy(given["target"], given["target_mask"]).sum()

    for path, leaf in jax.tree_util.tree_leaves_with_path(quick_jit(jax.grad(loss))(params)):
        assert jnp.isfinite(leaf).all() and leaf.any(), jax.tree_util.keystr(path)


def test_attention_without_features_is_refused():
    with pytest.raises(ConfigError, match=r"attention.name: expected 'convolutional' beside"):
        build("concatenation", "luong", readout={"name": "convolutional_copy"})
