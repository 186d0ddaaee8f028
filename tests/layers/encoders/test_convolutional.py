"""Encoders that do not recur, against their equations in NumPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.encoder import ENCODERS
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.ops.positions import sinusoidal_positions
from attention_jax.types import Call
from tests.quick import quick_jit

S, LENGTH, D = 6, 5, 4


def encode(name, **fields):
    """Returns parameters, words and what the encoder makes of a padded sentence."""
    config = ENCODERS.find(name).Config(**fields)
    encoder = ENCODERS.find(name).build(config, D)
    params = draw(encoder.parameters, jax.random.key(1), Initialization("uniform", scale=0.7))
    words = np.random.default_rng(0).normal(size=(1, S, D))
    mask = jnp.arange(S)[None] < LENGTH
    encoded = quick_jit(encoder.encode)(params, jnp.asarray(words, jnp.float32), mask)
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), params), words[0, :LENGTH], encoded


def window(vectors, place, width):
    """Returns the vectors around a place one after the other, zeros outside of the sentence."""
    zero = np.zeros_like(vectors[0])
    places = range(place - width // 2, place + width // 2 + 1)
    return np.concatenate([vectors[p] if 0 <= p < len(vectors) else zero for p in places])


def convolved(params, vectors, width):
    rows = [window(vectors, place, width) for place in range(len(vectors))]
    return np.asarray(rows) @ params["kernel"] + params["bias"]


def assert_encoded(encoded, keys, values):
    np.testing.assert_allclose(encoded.annotations[0, :LENGTH], keys, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(encoded.averaged[0, :LENGTH], values, rtol=1e-4, atol=1e-5)


def test_concatenation_adds_learned_positions_the_last_for_all_beyond():
    params, words, encoded = encode("concatenation", max_positions=3)
    expected = words + params["positions"][[0, 1, 2, 2, 2]]
    assert_encoded(encoded, expected, expected)


def test_concatenation_adds_sinusoids():
    params, words, encoded = encode("concatenation", positions="sinusoidal")
    expected = words + np.asarray(sinusoidal_positions(jnp.arange(LENGTH), D))
    assert params == {}
    assert_encoded(encoded, expected, expected)


def test_average_pooling_averages_keys_alone():
    params, words, encoded = encode("average_pooling", width=3, max_positions=S)
    values = words + params["positions"][:LENGTH]
    keys = [window(values, place, 3).reshape(3, D).sum(0) / 3 for place in range(LENGTH)]
    assert_encoded(encoded, np.asarray(keys), values)


def test_convolutional_has_two_stacks():
    fields = {"hidden_dim": 5, "key_layers": 3, "value_layers": 2, "kernel_width": 3}
    params, words, encoded = encode("convolutional", max_positions=S, **fields)
    embedded = words + params["positions"][:LENGTH]
    keys = embedded @ params["key_input"]["kernel"] + params["key_input"]["bias"]
    for layer in range(3):
        keys = np.tanh(convolved(params[f"key_layer_{layer}"], keys, 3) + keys)
    keys = keys @ params["key_output"]["kernel"] + params["key_output"]["bias"]
    values = embedded
    for layer in range(2):
        values = np.tanh(convolved(params[f"value_layer_{layer}"], values, 3) + values)
    assert_encoded(encoded, keys, values)


def test_gated_convolutional_gates_and_scales():
    fields = {"hidden_dim": 5, "num_layers": 2, "kernel_width": 5}
    params, words, encoded = encode("gated_convolutional", positions="none", **fields)
    hidden = words @ params["input"]["kernel"] + params["input"]["bias"]
    for layer in range(2):
        passing, gate = np.split(convolved(params[f"layer_{layer}"], hidden, 5), 2, axis=-1)
        hidden = (passing / (1 + np.exp(-gate)) + hidden) * np.sqrt(0.5)
    keys = hidden @ params["output"]["kernel"] + params["output"]["bias"]
    assert_encoded(encoded, keys, keys + words)


def test_gated_convolutional_drops_what_is_convolved_and_not_what_is_added():
    """With convolutions of zeros, of which the gates let nothing through, the rest remains."""
    fields = {"hidden_dim": 5, "num_layers": 2, "positions": "none", "dropout": 0.5}
    encoder = ENCODERS.find("gated_convolutional").build(
        ENCODERS.find("gated_convolutional").Config(**fields), D
    )
    params = draw(encoder.parameters, jax.random.key(1), Initialization("uniform", scale=0.7))
    words, mask = jax.random.normal(jax.random.key(2), (1, S, D)), jnp.ones((1, S), bool)

    @quick_jit
    def keys(params):
        dropped = encoder.encode(params, words, mask, Call(True, jax.random.key(3)))
        return dropped.annotations, encoder.encode(params, words, mask).annotations

    dropped, whole = keys(params)
    assert not np.allclose(dropped, whole, atol=1e-3)
    zeros = {name: jax.tree.map(jnp.zeros_like, params[name]) for name in ("layer_0", "layer_1")}
    dropped, whole = keys({**params, **zeros})
    np.testing.assert_allclose(dropped, whole, rtol=1e-6)


@pytest.mark.parametrize(("layers", "reach"), [(1, 1), (3, 3)])
def test_a_layer_of_three_sees_one_place_more_on_each_side(layers, reach):
    config = ENCODERS.find("convolutional").Config(
        hidden_dim=4, key_layers=layers, value_layers=1, positions="none"
    )
    encoder = ENCODERS.find("convolutional").build(config, D)
    params = draw(encoder.parameters, jax.random.key(1), Initialization("uniform", scale=0.7))
    mask = jnp.ones((1, 9), bool)

    def middle(words):
        return encoder.encode(params, words, mask).annotations[0, 4]

    slopes = quick_jit(jax.jacobian(middle))(jnp.ones((1, 9, D)))
    seen = np.abs(np.asarray(slopes)).max(axis=(0, 1, 3)) > 0
    assert np.flatnonzero(seen).tolist() == list(range(4 - reach, 5 + reach))
