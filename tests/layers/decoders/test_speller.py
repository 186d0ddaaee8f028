"""The speller against its equations in NumPy float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.decoder import DecoderSizes
from attention_jax.layers.decoders.speller import Config, build
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.encoders.recurrent import Config as EncoderConfig
from attention_jax.layers.encoders.recurrent import build as build_encoder
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.parameters import Initialization, draw
from tests.quick import quick_jit

T, S, E, D, F, LAYERS = 3, 4, 3, 2, 5, 2


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(params, carry, entering):
    hidden, cell = carry
    gates = entering + params["bias"] + hidden @ params["recurrent"]
    write, forget, candidate, output = np.split(gates, 4)
    cell = sigmoid(forget) * cell + sigmoid(write) * np.tanh(candidate)
    return sigmoid(output) * np.tanh(cell), cell


def reference(params, annotations, embedded):
    carries = [(np.zeros(D), np.zeros(D)) for _ in range(LAYERS)]
    context, features, rows = np.zeros(annotations.shape[1]), [], []
    for word in embedded:
        below = word
        for layer in range(LAYERS):
            weights = params[f"layer_{layer}"]
            entering = below @ weights["input"]
            if layer == 0:
                entering = entering + context @ weights["context"]
            carries[layer] = lstm(weights, carries[layer], entering)
            below = carries[layer][0]
        scores = annotations @ params["attention"]["kernel"].T @ below
        attended = np.exp(scores) / np.exp(scores).sum()
        context = attended @ annotations
        readout = params["readout"]
        hidden = below @ readout["state"] + context @ readout["context"] + readout["bias"]
        features.append(np.tanh(hidden))
        rows.append(attended)
    return np.array(features), np.array(rows)


def test_known_targets(numpy_rng):
    encoder = build_encoder(EncoderConfig("recurrent", "lstm", D), E)
    attention = MECHANISMS.config("luong_general")()
    decoder = build(
        Config(hidden_dim=D, num_layers=LAYERS, readout_dim=F),
        DecoderSizes(E, {"source": encoder}), attention,
    )  # fmt: skip
    params = draw(decoder.parameters, jax.random.key(0), Initialization("uniform", scale=0.9))
    annotations = numpy_rng.normal(size=(1, S, 2 * D))
    embedded = numpy_rng.normal(size=(1, T, E))

    @quick_jit
    def run(params, annotations, embedded):
        encoded = Encoded(annotations, jnp.ones((1, S), bool))
        memory, state = decoder.start(params, {"source": encoded}, T)
        decoded = decoder.run(params, memory, state, embedded)
        return decoded.features, decoded.attention.weights

    single = (jnp.asarray(array, jnp.float32) for array in (annotations, embedded))
    found = run(params, *single)
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    for array, expected in zip(found, reference(params, annotations[0], embedded[0]), strict=True):
        np.testing.assert_allclose(array[0], expected, rtol=1e-4, atol=1e-5)


def test_dropout_between_layers_needs_two_of_them():
    with pytest.raises(ValueError, match="dropout: expected more than one layer beside it, found"):
        Config(dropout=0.1)
