"""Lexicon readouts: hand-checked numbers, against NumPy, and what a lexicon does not know."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.errors import ConfigError
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.readout import READOUTS, ReadoutSizes, Step
from attention_jax.models import MODELS, build_model
from attention_jax.types import AttentionOutput
from tests.conformance.test_rows_alone import batch
from tests.models.test_encoders_with_decoders import with_readout
from tests.parameters import drawn
from tests.quick import quick_jit
from tests.teacher_forcing import compare_steps

NAMES = ("lexicon_bias", "lexicon_linear")
every_readout = pytest.mark.parametrize("name", NAMES)


def build(name, vocabulary_size, feature_dim, attention="luong_dot", **fields):
    config = MECHANISMS.config(attention)()
    mechanism = build_mechanism(config, feature_dim, feature_dim, feature_dim)
    sizes = ReadoutSizes(
        vocabulary_size, feature_dim, feature_dim, memory_dim=feature_dim,
        mechanism=mechanism, attention=config,
    )  # fmt: skip
    return READOUTS.find(name).build(READOUTS.config(name)(**fields), sizes)


def predict(readout, params, features, weights, ids, probs, spans=None):
    """Returns the probabilities of a step, for arrays `B T F`, `B T S` and `B S K`."""
    rows, slots = weights.shape[0], weights.shape[-1]
    annotations, mask = jnp.zeros((rows, slots, 1)), jnp.ones((rows, slots), bool)
    encoded = Encoded(annotations, mask, spans=spans)
    batch = {"lexicon": jnp.asarray(ids, jnp.int32), "lexicon_probs": jnp.asarray(probs, float)}
    source = jax.tree.map(lambda leaf: leaf[:, None], readout.prepare(params, encoded, batch))
    weights = jnp.asarray(weights, float)
    attention = AttentionOutput(weights, weights, weights)
    step = Step(jnp.asarray(features, float), attention, jnp.zeros((1, 1)), source)
    return jnp.exp(readout.predict(params, step).log_probs())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("lexicon_bias", [0.26333467, 0.32872834, 0.40793699]),
        ("lexicon_linear", [0.34501529, 0.25986424, 0.39512048]),
    ],
)
def test_by_hand(name, expected):
    """Two words, whose rows are (.8, .2, 0) and (0, .5, .5), attended to with .75 and .25."""
    readout = build(name, 3, 1)
    params = {"output": jnp.asarray([[0.0], [1.0], [2.0]]), "output_bias": jnp.zeros(3)}
    params["output_gate"] = jnp.zeros(())  # lambda = 1/2
    ids, probs = [[[0, 1], [1, 2]]], [[[0.8, 0.2], [0.5, 0.5]]]
    found = predict(readout, params, [[[1.0]]], np.array([[[0.75, 0.25]]]), ids, probs)
    np.testing.assert_allclose(found[0, 0], expected, rtol=1e-6)


@every_readout
def test_probabilities_add_up_to_one_with_rows_that_know_nothing(name, numpy_rng):
    """Also where nothing is attended to, and where a word stands in the source twice."""
    readout = build(name, 7, 4, **({"epsilon": 0.01} if name == "lexicon_bias" else {}))
    draw = lambda parameter: jnp.asarray(numpy_rng.normal(size=parameter.shape), float)  # noqa: E731
    params = jax.tree.map(draw, dict(readout.parameters))
    ids, probs = numpy_rng.integers(7, size=(2, 3, 2)), numpy_rng.random((2, 3, 2)) / 2
    ids[0, 1], probs[0, 1] = ids[0, 0], probs[0, 0]
    probs[1] = 0.0
    weights = numpy_rng.dirichlet(np.ones(3), size=(2, 4))
    weights[0, 3] = 0.0
    features = numpy_rng.normal(size=(2, 4, 4))
    found = predict(readout, params, features, weights, ids, probs)
    np.testing.assert_allclose(found.sum(-1), 1.0, atol=1e-6)

    table, bias = (np.asarray(params[name], float) for name in ("output", "output_bias"))
    lexical = np.zeros((2, 4, 7))
    for b, t, s, k in np.ndindex(2, 4, 3, 2):
        lexical[b, t, ids[b, s, k]] += weights[b, t, s] * probs[b, s, k]
    logits = features @ table.T + bias
    if name == "lexicon_bias":
        logits = logits + np.log(lexical + 0.01)
    expected = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    if name == "lexicon_linear":
        gate = 1 / (1 + np.exp(-np.asarray(params["output_gate"], float)))
        expected = gate * lexical + (1 - gate * lexical.sum(-1, keepdims=True)) * expected
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@every_readout
def test_slots_of_several_tokens_share_their_rows(name):
    readout = build(name, 3, 1)
    params = {"output": jnp.zeros((3, 1)), "output_bias": jnp.zeros(3), "output_gate": jnp.ones(())}
    ids, probs = [[[0], [1], [2]]], [[[0.9], [0.6], [0.3]]]
    spans = jnp.asarray([[[0, 2], [2, 3]]])
    pooled = predict(readout, params, [[[1.0]]], np.array([[[0.8, 0.2]]]), ids, probs, spans)
    single = predict(readout, params, [[[1.0]]], np.array([[[0.4, 0.4, 0.2]]]), ids, probs)
    np.testing.assert_allclose(pooled, single, rtol=1e-6)


@every_readout
def test_transformers_have_lexicons_too(name):
    """By the attention of the last layer; a search takes the same steps one by one."""
    model, given = with_readout(name, "transformer"), batch()
    params, apply = drawn(model, 1), quick_jit(model.apply)
    output = apply(params, given)
    probs = np.exp(output.predictions.log_probs())
    np.testing.assert_allclose(probs.sum(-1), 1.0, atol=1e-6)
    compare_steps(model, params, given, output.predictions)
    # A lexicon that knows nothing leaves the softmax.
    silent = {**given, "lexicon_probs": jnp.zeros_like(given["lexicon_probs"])}
    alone = np.exp(apply(params, silent).predictions.log_probs())
    weights, lexical = np.asarray(output.attention.weights), np.zeros(probs.shape)
    for b, t, s, k in np.ndindex(*weights.shape, given["lexicon"].shape[-1]):
        entry = given["lexicon_probs"][b, s, k]
        lexical[b, t, given["lexicon"][b, s, k]] += weights[b, t, s] * entry
    if name == "lexicon_bias":
        expected = alone * (lexical + model.readout.epsilon)
        expected = expected / expected.sum(-1, keepdims=True)
    else:
        gate = 1 / (1 + np.exp(-np.float64(params["output_gate"])))
        expected = gate * lexical + (1 - gate * lexical.sum(-1, keepdims=True)) * alone
    np.testing.assert_allclose(probs, expected, rtol=1e-3, atol=1e-6)


@every_readout
def test_a_model_that_attends_to_no_tokens_is_refused(name):
    with pytest.raises(ValueError, match=f"readout.name: expected .* {name!r}, found attention"):
        build(name, 3, 1, attention="none")
    values = {"name": "bidirectional", "readout": {"name": name}}
    config = typed(MODELS.config("bidirectional"), values, "config.model")
    with pytest.raises(ConfigError, match="readout.name: .* in a model of both directions"):
        build_model(config, 7, 7)
