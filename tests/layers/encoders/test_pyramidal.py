"""The pyramidal encoder against its equations in NumPy float64."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.layers.encoders.pyramidal import Config, build
from attention_jax.layers.parameters import Initialization, draw
from tests.quick import quick_jit

B, N, E, D, LEVELS = 3, 7, 3, 2, 2
LENGTHS = (7, 4, 1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(params, vectors):
    """One direction over one row."""
    hidden, cell, found = np.zeros(D), np.zeros(D), []
    for vector in vectors:
        gates = vector @ params["input"] + params["bias"] + hidden @ params["recurrent"]
        write, forget, candidate, output = np.split(gates, 4)
        cell = sigmoid(forget) * cell + sigmoid(write) * np.tanh(candidate)
        hidden = sigmoid(output) * np.tanh(cell)
        found.append(hidden)
    return found


def reference(params, vectors):
    """Returns the annotations of one row, and the final hidden states of each layer."""
    finals = []
    for layer in range(1 + LEVELS):
        if layer:
            below = [*vectors, np.zeros_like(vectors[0])]
            vectors = [np.concatenate(below[u : u + 2]) for u in range(0, len(vectors), 2)]
        forward = lstm(params[f"layer_{layer}_forward"], vectors)
        backward = lstm(params[f"layer_{layer}_backward"], vectors[::-1])[::-1]
        finals.append((forward[-1], backward[0]))
        vectors = [np.concatenate(pair) for pair in zip(forward, backward, strict=True)]
    return np.array(vectors), finals


def test_annotations_finals_and_spans(numpy_rng):
    encoder = build(Config(hidden_dim=D, levels=LEVELS), E)
    params = draw(encoder.parameters, jax.random.key(0), Initialization("uniform", scale=0.8))
    vectors = numpy_rng.normal(size=(B, N, E))
    mask = np.arange(N) < np.array(LENGTHS)[:, None]
    junk = jnp.asarray(np.where(mask[..., None], vectors, np.nan), jnp.float32)
    encoded = quick_jit(encoder.encode)(params, junk, jnp.asarray(mask))
    params = jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), params)
    assert encoded.annotations.shape == (B, 2, encoder.output_dim) == (B, 2, 2 * D)
    for row, length in enumerate(LENGTHS):
        expected, finals = reference(params, list(vectors[row, :length]))
        found = encoded.annotations[row]
        np.testing.assert_allclose(found[: len(expected)], expected, rtol=1e-4, atol=1e-5)
        assert not np.asarray(found[len(expected) :]).any()
        for layer, directions in enumerate(finals):
            for reading, final in zip(("forward", "backward"), directions, strict=True):
                hidden = encoded.finals[layer][reading]["hidden"][row]
                np.testing.assert_allclose(hidden, final, rtol=1e-4, atol=1e-5)
    assert encoded.spans[0].tolist() == [[0, 4], [4, 7]]
    assert encoded.spans[2].tolist() == [[0, 1], [4, 4]]
