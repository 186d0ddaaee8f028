"""GNMT's decoder against its equations in NumPy, and what its recurrence is left with."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.decoder import DecoderSizes
from attention_jax.layers.decoders.gnmt import Config, GnmtDecoder, build
from attention_jax.layers.encoders.recurrent import Config as EncoderConfig
from attention_jax.layers.encoders.recurrent import build as build_encoder
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.types import Call
from tests.quick import quick_jit

B, T, S, E, D, LAYERS = 2, 3, 4, 4, 5, 4
VARIANTS = ("paper", "gnmt", "gnmt_v2")
UNIFORM = Initialization("uniform", scale=0.7)
ENCODER = EncoderConfig("recurrent", "lstm", D, LAYERS, bidirectional_layers=1, residual=True)


def decoder_of(variant="paper", **fields):
    fields = {"num_layers": LAYERS, "residual": True, "bridge": "copy_backward", **fields}
    config = Config(hidden_dim=D, variant=variant, **fields)
    sizes = DecoderSizes(E, {"source": build_encoder(ENCODER, 3)})
    return build(config, sizes, MECHANISMS.config("bahdanau")(attention_dim=6))


@functools.cache
def inputs():
    """The encoder's parameters, its words, and the words before each target."""
    rng = np.random.default_rng(0)
    params = draw(build_encoder(ENCODER, 3).parameters, jax.random.key(5), UNIFORM)
    words = jnp.asarray(rng.normal(size=(B, S, 3)), jnp.float32)
    return params, words, jnp.asarray(rng.normal(size=(B, T, E)), jnp.float32)


@functools.cache
def encoded():
    params, words, _ = inputs()
    mask = jnp.arange(S) < jnp.asarray([4, 2])[:, None]
    return quick_jit(build_encoder(ENCODER, 3).encode)(params, words, mask)


@functools.cache
def run(variant):
    """Returns parameters, features and weights."""
    decoder = decoder_of(variant)
    params = draw(decoder.parameters, jax.random.key(6), UNIFORM)

    @quick_jit
    def decode(params, encoded, embedded):
        memory, state = decoder.start(params, {"source": encoded}, T)
        features, attention, *_ = decoder.run(params, memory, state, embedded)
        return features, attention.weights

    return params, *decode(params, encoded(), inputs()[2])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(params, state, gates):
    i, f, g, o = np.split(gates + state[0] @ params["recurrent"] + params["bias"], 4)
    cell = sigmoid(f) * state[1] + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def in_float64(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, float), tree)


def attend(params, query, annotations):
    hidden = np.tanh(query @ params["query_kernel"] + annotations @ params["key_kernel"])
    weights = np.exp(hidden @ params["vector"])
    weights /= weights.sum()
    return weights @ annotations, weights


def decode(variant, params, annotations, states, words):
    """One sentence, one token after the other, every layer's input written as a concatenation."""
    context, features, attention = np.zeros(D), [], []
    for t, word in enumerate(words):
        if variant != "gnmt_v2":
            context, weights = attend(params["attention"], states[0][0], annotations)
            if variant == "gnmt" and t == 0:
                context, weights = np.zeros_like(context), np.zeros_like(weights)
        output = word
        for layer in range(LAYERS):
            weights_of = params[f"layer_{layer}"]
            kernel = np.concatenate([weights_of["input"], weights_of["context"]])
            below = output
            states[layer] = lstm(
                weights_of, states[layer], np.concatenate([below, context]) @ kernel
            )
            output = states[layer][0] + (below if layer >= 2 else 0)
            if layer == 0 and variant == "gnmt_v2":
                context, weights = attend(params["attention"], states[0][0], annotations)
        features.append(output)
        attention.append(weights)
    return np.asarray(features), np.asarray(attention)


@pytest.mark.parametrize("variant", VARIANTS)
def test_gnmt_equals_its_equations(variant):
    params, features, weights = run(variant)
    source = in_float64(encoded())
    for row, length in enumerate((4, 2)):
        states = []
        for layer in range(LAYERS):
            final = source.finals[layer]["backward" if layer == 0 else "forward"]
            states.append((final["hidden"][row], final["cell"][row]))
        annotations = source.annotations[row, :length]
        words = np.asarray(inputs()[2], float)[row]
        expected = decode(variant, in_float64(params), annotations, states, words)
        np.testing.assert_allclose(features[row], expected[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(weights[row, :, :length], expected[1], rtol=1e-4, atol=1e-5)


def test_encoder_has_residuals_from_the_third_layer():
    """One layer both ways, then forward; the second one changes the depth and adds nothing."""
    params, words = in_float64(inputs()[0]), np.asarray(inputs()[1], float)[0]
    readings = []
    for reading in ("forward", "backward"):
        weights, state, states = params[f"layer_0_{reading}"], (np.zeros(D), np.zeros(D)), []
        for word in words if reading == "forward" else words[::-1]:
            state = lstm(weights, state, word @ weights["input"])
            states.append(state[0])
        readings.append(states if reading == "forward" else states[::-1])
    below = np.concatenate(readings, -1)
    for layer in range(1, LAYERS):
        weights, state, states = params[f"layer_{layer}_forward"], (np.zeros(D), np.zeros(D)), []
        for vector in below:
            state = lstm(weights, state, vector @ weights["input"])
            states.append(state[0] + (vector if layer >= 2 else 0))
        below = np.asarray(states)
    np.testing.assert_allclose(encoded().annotations[0], below, rtol=1e-4, atol=1e-5)


def test_only_the_bottom_layer_recurs_with_the_attention():
    """What the loops multiply: one has attention and bottom layer, the others one matrix each."""
    decoder = decoder_of()
    params = draw(decoder.parameters, jax.random.key(6), UNIFORM)

    def features(params, encoded, embedded):
        memory, state = decoder.start(params, {"source": encoded}, T)
        return decoder.run(params, memory, state, embedded)[0]

    traced = jax.make_jaxpr(features)(params, encoded(), inputs()[2])
    loops = [
        sum(equation.primitive.name == "dot_general" for equation in _inner(loop))
        for loop in _inner(traced.jaxpr)
        if loop.primitive.name == "scan"
    ]
    query_context_and_two_of_the_cell = 4
    assert sorted(loops)[: LAYERS - 1] == [1] * (LAYERS - 1)
    assert len(loops) == LAYERS and max(loops) >= query_context_and_two_of_the_cell


def _inner(part):
    """Yields all equations inside of an equation or a jaxpr, those of inner loops included."""
    jaxprs = [part] if hasattr(part, "eqns") else [
        getattr(value, "jaxpr", value)
        for value in jax.tree.leaves(list(part.params.values()), is_leaf=_is_jaxpr)
        if _is_jaxpr(value)
    ]  # fmt: skip
    for jaxpr in jaxprs:
        for equation in jaxpr.eqns:
            yield equation
            yield from _inner(equation)


def _is_jaxpr(value):
    return hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns")


@pytest.mark.parametrize("variant", VARIANTS)
def test_layer_by_layer_drops_what_step_by_step_does(variant):
    decoder, rng = decoder_of(variant, dropout=0.4, recurrent_dropout=0.3), jax.random.key(3)
    params = draw(decoder.parameters, jax.random.key(6), UNIFORM)

    @quick_jit
    def decode(params, encoded, embedded):
        memory, state = decoder.start(params, {"source": encoded}, T)
        arguments = (params, memory, state, embedded)
        by_layer = decoder.run(*arguments, call=Call(True, rng))
        by_step = super(GnmtDecoder, decoder).run(*arguments, call=Call(True, rng))
        return by_layer, by_step, decoder.run(*arguments)[0]

    by_layer, by_step, whole = decode(params, encoded(), inputs()[2])
    for one, other in zip(*map(jax.tree.leaves, (by_layer, by_step)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert not np.allclose(by_layer[0], whole, atol=1e-2)


def test_every_layer_drops_units_of_its_own():
    """The words are dropped before the decoder, and the hidden state of every layer."""
    decoder = decoder_of(dropout=0.5, recurrent_dropout=0.5)
    (words, *factors), *upper = decoder.dropout(Call(True, jax.random.key(0)), 16, jnp.float32)
    assert words is None and len(upper) == LAYERS - 1
    drawn = [np.asarray(each) for each in [*factors, *itertools.chain(*upper)]]
    assert [each.shape for each in drawn] == [(16, D)] * (2 * LAYERS - 1)
    assert not any(np.array_equal(a, b) for a, b in itertools.combinations(drawn, 2))


def test_a_step_that_is_told_nothing_has_attended_to_nothing():
    config = Config(hidden_dim=D, num_layers=2, variant="gnmt")
    sizes = DecoderSizes(E, {"source": build_encoder(ENCODER, 3)})
    decoder = build(config, sizes, MECHANISMS.config("linguistic_coverage")())
    params = draw(decoder.parameters, jax.random.key(6), UNIFORM)

    @quick_jit
    def attended(params, encoded, embedded):
        memory, state = decoder.start(params, {"source": encoded}, T)
        states = [state["attention"]]
        for step in range(2):
            inputs = decoder.inputs(params, embedded[:, step])
            state, _ = decoder.advance(params, memory, None, state, inputs)
            states.append(state["attention"])
        return states

    start, first, second = map(jax.tree.leaves, attended(params, encoded(), inputs()[2]))
    jax.tree.map(np.testing.assert_array_equal, first, start)
    assert any(not np.array_equal(a, b) for a, b in zip(second, first, strict=True))


def test_residuals_without_a_third_layer_are_rejected():
    with pytest.raises(ValueError, match="residual: expected at least three layers, .* found 2"):
        Config(num_layers=2, residual=True)
