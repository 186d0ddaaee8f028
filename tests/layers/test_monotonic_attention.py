"""Monotonic attention and MoChA as mechanisms: modes, noise, decisions, and what is refused."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.errors import ConfigError
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import ENCODERS, sequence
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.models import MODELS, build_model
from attention_jax.types import Call
from tests.conformance.battery import small_config
from tests.models.test_encoders_with_decoders import build, small

D = 4
NAMES = ("monotonic", "mocha")
DOT = {"score": MECHANISMS.config("luong_dot")()}


def attend(name, energies, *, call=Call(), r=0.0, mask=None, state=None, chunks=None, **fields):
    """Attends with the given energies `T S`: one query for each, and keys that are one-hot.

    The values are the slots' indices, from one on.
    """
    energies = np.asarray(energies, np.float32)
    size = energies.shape[1]
    if name == "mocha":
        fields.setdefault("chunk_score", MECHANISMS.config("luong_general")())
    config = MECHANISMS.config(name)(**{**DOT, **fields})
    mechanism = build_mechanism(config, size, size, 1)
    params = {"stop_bias": jnp.float32(r), "chunk_kernel": jnp.zeros((size, size))}
    params = {key: params[key] for key in mechanism.parameters}
    mask = jnp.ones((1, size), bool) if mask is None else jnp.asarray(mask)[None]
    places = 1.0 + jnp.arange(size, dtype=jnp.float32)
    source = sequence(jnp.eye(size)[None], mask, values=places[None, :, None])
    memory = mechanism.make_memory(params, source)
    output, state = mechanism.attend(params, jnp.asarray(energies)[None], memory, state, call=call)
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), output), state


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("size", [1, 2, 6])
def test_both_modes_agree_where_probabilities_are_certain(name, size):
    """Energies of +-50: decisions and expectation are the same, for one slot and chunks beyond."""
    rng = np.random.default_rng(size)
    energies = 50 * (1 - 2 * (rng.random((4, size)) < 0.4))
    energies[:, -1] = 50  # something stops every query
    hard, _ = attend(name, energies)
    expected, _ = attend(name, energies, evaluation="expected")
    trained, _ = attend(name, energies, call=Call(True), noise=0.0)
    for other in (expected, trained):
        np.testing.assert_allclose(hard.weights, other.weights, atol=1e-6)
        np.testing.assert_allclose(hard.context, other.context, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_query_that_stops_nowhere_reads_nothing_and_moves_nobody(name):
    energies = [[-1, 1, -1, -1], [-1, -1, -1, -1], [-1, -1, 1, -1]]
    output, state = attend(name, energies, window=1) if name == "mocha" else attend(name, energies)
    np.testing.assert_array_equal(output.weights, [[0, 1, 0, 0], [0] * 4, [0, 0, 1, 0]])
    np.testing.assert_array_equal(output.context[:, 0], [2, 0, 3])
    np.testing.assert_array_equal(state["previous_alignment"], [[0, 0, 1, 0]])
    lost, _ = attend(name, np.multiply(50, energies), evaluation="expected")
    assert np.abs(lost.weights[1:]).max() < 1e-6  # in expectation, what has left is gone


@pytest.mark.parametrize(("name", "stops"), [("monotonic", False), ("mocha", True)])
def test_an_energy_of_zero_stops_in_mocha_alone(name, stops):
    output, _ = attend(name, [[0.0, -1.0]])
    assert bool(output.weights.any()) == stops


def test_decisions_read_no_slot_beyond_the_stop_and_a_chunk_reads_back():
    energies = [[-1, -1, 1, 5, 5], [-1, -1, -1, 1, 5]]
    output, _ = attend("mocha", energies, window=2)
    np.testing.assert_allclose(output.weights, [[0, 0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5, 0]].copy())
    whole, _ = attend("mocha", energies, window=None)
    np.testing.assert_allclose(whole.weights[0], [1 / 3, 1 / 3, 1 / 3, 0, 0], rtol=1e-6)
    np.testing.assert_allclose(whole.weights[1], [0.25] * 4 + [0], rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_mass_flows_past_what_is_masked(name):
    mask = [False, True, False, True]
    output, _ = attend(name, [[9, -9, 9, 9]], mask=mask, evaluation="expected")
    assert np.all(output.weights[0, [0, 2]] == 0)
    np.testing.assert_allclose(output.weights.sum(), 1, rtol=1e-3)
    hard, _ = attend(name, [[9, -9, 9, 9]], mask=mask)
    assert hard.weights[0].argmax() == 3 or name == "mocha"
    np.testing.assert_array_equal(hard.aux["alignment"], [[0, 0, 0, 1]])


@pytest.mark.parametrize("name", NAMES)
def test_noise_is_drawn_in_training_alone_and_each_time_anew(name):
    energies = [[0.5, -0.5, 1.0]] * 2
    keys = jax.random.split(jax.random.key(0))
    runs = [attend(name, energies, call=Call(True, key))[0].weights for key in keys]
    assert not np.allclose(*runs)
    plain = [
        attend(name, energies, call=call, noise=noise)[0].weights
        for call, noise in ((Call(True, keys[0]), 0.0), (Call(True, keys[1]), 0.0))
    ]
    np.testing.assert_array_equal(*plain)
    evaluated = [attend(name, energies, call=Call(False, key))[0].weights for key in keys]
    np.testing.assert_array_equal(*evaluated)
    with pytest.raises(ValueError, match="rng: expected a key, because noise is on, found None"):
        attend(name, energies, call=Call(True))


def test_parameters_start_where_the_paper_has_them():
    """g from 1 / sqrt(d) and r from a config's number, whatever the initialization."""
    score = MECHANISMS.config("normed_bahdanau")(attention_dim=16)
    config = MECHANISMS.config("monotonic")(score=score, initial_bias=-4.0, num_heads=2)
    mechanism = build_mechanism(config, D, D, D)
    for name in ("default", "bahdanau2015", "xavier", "uniform"):
        params = draw(mechanism.parameters, jax.random.key(0), Initialization(name))
        np.testing.assert_array_equal(params["stop_bias"], [-4.0, -4.0])
        np.testing.assert_array_equal(params["gain"], [0.25, 0.25])
        assert np.all(np.linalg.norm(params["vector"], axis=-1) > 0)
        assert params["bias"].any() == (name == "uniform")


def test_the_length_of_a_normed_vector_does_not_count():
    mechanism = build_mechanism(small_config("normed_bahdanau"), D, D, D)
    params = draw(mechanism.parameters, jax.random.key(1), Initialization())
    longer = {**params, "vector": 7 * params["vector"]}
    rng = np.random.default_rng(0)
    query, keys = (jnp.asarray(rng.normal(size=(1, 3, D)), jnp.float32) for _ in range(2))

    def scores(params):
        memory = mechanism.make_memory(params, sequence(keys, jnp.ones((1, 3), bool)))
        return mechanism.attend(params, query, memory)[0].scores

    np.testing.assert_allclose(scores(params), scores(longer), rtol=1e-5)
    own = jax.tree.map(np.asarray, params)
    asked, compared = (
        np.asarray(rows)[0] @ own[f"{side}_kernel"]
        for side, rows in (("query", query), ("key", keys))
    )
    vector = own["gain"] * own["vector"] / np.linalg.norm(own["vector"])
    hidden = np.tanh(asked[:, None] + compared + own["bias"])
    np.testing.assert_allclose(scores(params)[0], hidden @ vector, rtol=1e-5, atol=1e-6)


# ---- What is refused, in one line ----------------------------------------------------------------
SOFT = {"name": "luong_general", "normalizer": "entmax15"}


@pytest.mark.parametrize(
    ("attention", "message"),
    [
        ({"name": "mocha", "window": 0}, "attention.window: expected at least 1, found 0"),
        ({"name": "monotonic", "noise": -1.0}, "attention.noise: expected at least 0, found -1.0"),
        ({"name": "mocha", "evaluation": "soft"}, "attention.evaluation: expected one of 'hard'"),
        (
            {"name": "monotonic", "score": SOFT},
            "attention.score.normalizer: expected 'softmax', as nothing normalises these scores",
        ),
        ({"name": "mocha", "chunk_score": SOFT}, "attention.chunk_score.normalizer: expected"),
        (
            {"name": "monotonic", "score": {"name": "coverage_vector"}},
            "attention.score.name: expected a score that carries nothing .* which carries cov",
        ),
        (
            {"name": "monotonic", "score": {"name": "local_m"}},
            "attention.score.name: expected a score over all slots, found 'local_m'",
        ),
        (
            {"name": "local_p", "score": {"name": "monotonic"}},
            "attention.score.name: expected a score over all slots, found 'monotonic'",
        ),
        (
            {
                "name": "multi_head", "score": {"name": "mocha"},
                "refinements": {"attention_sink": {}},
            },
            "attention.refinements.attention_sink: expected a score that is normalised",
        ),
    ],
)
def test_configs_that_make_no_sense_are_refused(attention, message):
    with pytest.raises(ConfigError, match=message) as error:
        typed(MODELS.config("encoder_decoder"), {"attention": attention}, "config.model")
    assert "\n" not in str(error.value)


def test_a_sequence_cannot_attend_to_itself_nor_several_sources_be_asked():
    sources = {name: {"encoder": {"name": "concatenation"}} for name in ("source", "tags")}
    for fields, message in (
        (
            {"decoder": {"name": "transformer"}, "attention": {"name": "monotonic"}},
            "attention.name: expected a mechanism with which a sequence can attend to itself, "
            "found 'monotonic' over 'normed_bahdanau', which carries previous_alignment; "
            "decoder.self_attention may be another one",
        ),
        (
            {"sources": sources, "attention": {"name": "mocha"}, "decoder": {"bridge": "mean"}},
            "attention.name: expected a mechanism that attends to several sources for source, tags",
        ),
    ):
        fields.setdefault("decoder", {})
        fields["decoder"] = {"name": "conditional_gru", **fields["decoder"]}
        config = typed(MODELS.config("encoder_decoder"), fields, "config.model")
        with pytest.raises(ConfigError, match=message) as error:
            build_model(config, 9, 9)
        assert "\n" not in str(error.value)


# ---- Encoders of prefixes ------------------------------------------------------------------------
def _with_directions():
    for name in ENCODERS.names():
        config = ENCODERS.config(name)
        fields = {field.name: field for field in dataclasses.fields(config)}
        directions = ["forward", "backward", "bidirectional"] if "direction" in fields else [None]
        yield from ((name, direction) for direction in directions)


@pytest.mark.parametrize(("name", "direction"), [*_with_directions()])
def test_encoders_that_look_back_only_say_so(name, direction):
    fields = {**small(ENCODERS.config(name)), **({"direction": direction} if direction else {})}
    reading = {"name": "tokens", "embedding_dim": 8}
    encoder = build("concatenation", "conditional_gru", encoder=fields, input=reading).encoder
    rng = np.random.default_rng(0)
    params = jax.tree.map(
        lambda each: jnp.asarray(rng.normal(size=each.shape), jnp.float32), encoder.parameters
    )
    vectors = jnp.asarray(rng.normal(size=(1, 6, 8)), jnp.float32)
    whole, part = (
        jax.jit(encoder.encode)(params, vectors, jnp.arange(6)[None] < length)
        for length in (6, 4)
    )
    is_same = all(
        np.allclose(one[:, :4], other[:, :4], atol=1e-5)
        for one, other in (
            (whole.annotations, part.annotations), (whole.averaged, part.averaged)
        )
    )  # fmt: skip
    assert is_same == encoder.is_causal
