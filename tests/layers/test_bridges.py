"""Bridges against their formulas."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.bridges import BRIDGES, bridge_carries, bridge_parameters, check_bridge
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.encoders.recurrent import Config, build
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.layers.state_combination import child_sum

B, S, D = 2, 4, 3
Encoder = functools.partial(Config, "recurrent")


def encoded_by(config):
    initialization, rng = Initialization("uniform", scale=1.0), jax.random.key(0)
    encoder = build(config, 2)
    params = draw(encoder.parameters, rng, initialization)
    embedded = jax.random.normal(rng, (B, S, 2))
    mask = jnp.asarray([[True] * 4, [True, True, False, False]])
    return jax.jit(encoder.encode)(params, embedded, mask)


def carries(bridge, encoder, cell, depth, layers):
    tree = bridge_parameters(bridge, {"source": build(encoder, 2)}, cell, depth, layers)
    params = draw(tree, jax.random.key(1), Initialization("uniform", scale=1.0))
    encoded = encoded_by(encoder)
    return encoded, params, bridge_carries(bridge, params, {"source": encoded}, cell, depth, layers)


def through(weights, summary):
    kernel, bias = (np.asarray(weights[name], float) for name in ("kernel", "bias"))
    return np.tanh(np.asarray(summary, float) @ kernel + bias)


@pytest.mark.parametrize(("layers", "sources"), [(1, [1]), (2, [0, 1]), (3, [1, 1, 1])])
@pytest.mark.parametrize("bridge", ["last", "backward", "mean"])
def test_projecting_bridges(bridge, layers, sources):
    """Decoder layers start from their peers if there are as many, else from the top."""
    encoder = Encoder("lstm", D, 2)
    encoded, params, found = carries(bridge, encoder, "lstm", 5, layers)
    lengths = np.asarray(encoded.mask).sum(1, keepdims=True)
    for layer, source in enumerate(sources):
        finals = encoded.finals[source]
        summary = {
            "last": np.concatenate([finals[d]["hidden"] for d in ("forward", "backward")], -1),
            "backward": finals["backward"]["hidden"],
            "mean": np.asarray(encoded.annotations).sum(1) / lengths,
        }[bridge]
        for entry in ("hidden", "cell"):
            expected = through(params[f"layer_{layer}_{entry}"], summary)
            np.testing.assert_allclose(found[layer][entry], expected, rtol=1e-5, atol=1e-6)


def test_means_are_of_the_values_where_keys_are_others():
    """As convolutional encoders have them, which end with no state."""
    rng = np.random.default_rng(0)
    keys, values = (jnp.asarray(rng.normal(size=(B, S, 2 * D)), jnp.float32) for _ in range(2))
    lengths = np.array([4, 2])
    mask = jnp.arange(S) < lengths[:, None]
    values = values * mask[..., None]
    encoded, mean = Encoded(keys, mask, values=values), np.asarray(values).sum(1) / lengths[:, None]
    np.testing.assert_allclose(encoded.summary, mean, rtol=1e-5, atol=1e-6)
    tree = bridge_parameters("mean", {"source": build(Encoder("lstm", D), 2)}, "gru", 5, 1)
    params = draw(tree, jax.random.key(1), Initialization("uniform", scale=1.0))
    (carry,) = bridge_carries("mean", params, {"source": encoded}, "gru", 5, 1)
    (found,) = carry.values()
    expected = through(params["layer_0_hidden"], mean)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_copy_takes_the_final_states():
    encoder = Encoder("lstm", D, 2)
    encoded, params, found = carries("copy", encoder, "lstm", 2 * D, 2)
    assert params == {}
    for layer in range(2):
        for entry in ("hidden", "cell"):
            expected = [encoded.finals[layer][side][entry] for side in ("forward", "backward")]
            np.testing.assert_array_equal(found[layer][entry], np.concatenate(expected, -1))


def test_copy_backward_takes_one_reading_of_each_layer():
    """The bottom layer reads both ways, the top one forward."""
    encoder = Encoder("lstm", D, 2, bidirectional_layers=1)
    encoded, params, found = carries("copy_backward", encoder, "lstm", D, 2)
    assert params == {}
    for layer, reading in enumerate(("backward", "forward")):
        for entry in ("hidden", "cell"):
            expected = encoded.finals[layer][reading][entry]
            np.testing.assert_array_equal(found[layer][entry], expected)


def test_zero_starts_from_zeros():
    _, params, found = carries("zero", Encoder("gru", D), "lstm", 5, 2)
    assert params == {} and len(found) == 2
    assert all(leaf.shape == (B, 5) and not leaf.any() for leaf in jax.tree.leaves(found))


def test_every_bridge_is_tested():
    alone = {"last", "backward", "mean", "copy", "copy_backward", "zero"}
    assert set(BRIDGES) == alone | {"basic", "child_sum"}


def combined(bridge, names=("source", "fr")):
    """Returns what several encoders of two layers end with, and what is made of it, in float64."""
    encoder = Encoder("lstm", D, 2, direction="forward")
    encoded = encoded_by(encoder)
    finals = tuple(jax.tree.map(lambda leaf: -0.5 * leaf + 0.1, each) for each in encoded.finals)
    sources = dict(zip(names, (encoded, dataclasses.replace(encoded, finals=finals)), strict=True))
    tree = bridge_parameters(bridge, dict.fromkeys(names, build(encoder, 2)), "lstm", D, 2)
    params = draw(tree, jax.random.key(1), Initialization("uniform", scale=1.0))
    found = bridge_carries(bridge, params, sources, "lstm", D, 2)
    ended = [[np.asarray([each.finals[layer]["forward"][entry] for each in sources.values()], float)
              for entry in ("hidden", "cell")] for layer in range(2)]  # fmt: skip
    kernels = [np.asarray([params[f"layer_{layer}"][name] for name in names], float)
               for layer in range(2)]  # fmt: skip
    return found, ended, kernels


def test_basic_combination_projects_states_and_adds_cells():
    for found, (states, cells), kernels in zip(*combined("basic"), strict=True):
        hidden = np.tanh(sum(h @ w for h, w in zip(states, kernels, strict=True)))
        np.testing.assert_allclose(found["hidden"], hidden, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found["cell"], cells.sum(0), rtol=1e-5, atol=1e-6)


def test_child_sum_is_a_cell_of_a_tree():
    sigmoid = lambda x: 1 / (1 + np.exp(-x))  # noqa: E731
    for found, (states, cells), kernels in zip(*combined("child_sum"), strict=True):
        gates = [np.split(h @ w, 4, -1) for h, w in zip(states, kernels, strict=True)]
        enter, leave, update = (gates[0][part] + gates[1][part] for part in range(3))
        cell = sigmoid(enter) * np.tanh(update)
        cell = cell + sum(sigmoid(g[3]) * c for g, c in zip(gates, cells, strict=True))
        np.testing.assert_allclose(found["cell"], cell, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found["hidden"], sigmoid(leave) * np.tanh(cell), rtol=1e-5)


def test_child_sum_of_two_numbers():
    """h 0.5 and -0.5, c 1 and 2, all weights 1, worked out by hand."""
    carries = {"one": {"hidden": 0.5, "cell": 1.0}, "two": {"hidden": -0.5, "cell": 2.0}}
    carries = jax.tree.map(lambda number: jnp.full((1, 1), number), carries)
    found = child_sum(dict.fromkeys(carries, jnp.ones((1, 4))), carries)
    np.testing.assert_allclose(found["cell"], [[1.37754067]], rtol=1e-6)
    np.testing.assert_allclose(found["hidden"], [[0.44019968]], rtol=1e-6)


@pytest.mark.parametrize(
    ("bridge", "encoders", "cell", "message"),
    [
        ("basic", [Encoder("lstm", 4, direction="forward")], "lstm", "several sources for 'basic'"),
        ("child_sum", [Encoder("gru", 2)] * 2, "gru", "an lstm for 'child_sum', found gru"),
        ("basic", [Encoder("lstm", 2), Encoder("lstm", 4)], "lstm", r"depth 4 .* \[8\] of lstm"),
        ("child_sum", [Encoder("lstm", 2, 2)] * 2, "lstm", "an encoder of 1 layers"),
    ],
)
def test_sources_that_cannot_be_combined_are_rejected(bridge, encoders, cell, message):
    built = {f"source{n}": build(encoder, 2) for n, encoder in enumerate(encoders)}
    with pytest.raises(ValueError, match=f"decoder.bridge: expected .*{message}"):
        check_bridge(bridge, built, cell, 4, 1)


@pytest.mark.parametrize(
    ("bridge", "encoder", "cell", "depth", "layers", "message"),
    [
        ("backward", Encoder(direction="forward"), "gru", 4, 1, "that reads backward"),
        ("copy", Encoder("gru", 4), "gru", 4, 1, r"depth 4 to copy into gru, found .* \[8\]"),
        ("copy", Encoder("gru", 2), "lstm", 4, 1, "to copy into lstm, found .* of gru"),
        ("copy", Encoder("gru", 2, 2), "gru", 4, 1, "an encoder of 1 layers"),
        ("copy_backward", Encoder("gru", 2), "gru", 4, 1, r"depth 4 to copy .* \[2\]"),
    ],
)
def test_encoders_without_what_a_bridge_needs_are_rejected(
    bridge, encoder, cell, depth, layers, message
):
    with pytest.raises(ValueError, match=f"decoder.bridge: expected .*{message}"):
        check_bridge(bridge, {"source": build(encoder, 2)}, cell, depth, layers)
