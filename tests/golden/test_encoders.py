"""Cases of encoders that were worked out by hand."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import ENCODERS
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.layers.parameters import Initialization, draw
from attention_jax.ops.attend import attend
from attention_jax.ops.lstmn import SPEC
from attention_jax.ops.positions import sinusoidal_positions
from attention_jax.types import Memory


def test_summaries_of_a_tape_of_two_slots():
    """Scores [0, 1], h = [1, 2], c = [.5, -.5]: h~ = 1.73105858, c~ = -.23105858.

    v tanh(k) is 0 for the key 0, and 1 for the key atanh(1 / v).
    """
    keys = jnp.asarray([[[0.0], [np.arctanh(0.5)]]])
    values = jnp.asarray([[[1.0, 0.5], [2.0, -0.5]]])
    tape = Memory(keys, values, jnp.ones((1, 2), bool))
    output, _ = attend(SPEC, {"vector": jnp.asarray([2.0])}, jnp.zeros((1, 1, 1)), tape)
    np.testing.assert_allclose(output.scores[0, 0], [0.0, 1.0], atol=1e-6)
    np.testing.assert_allclose(output.context[0, 0], [1.73105858, -0.23105858], rtol=1e-6)


def test_sinusoidal_positions():
    """Depth 4, positions 1 and 2; position 0 is sin 0 and cos 0."""
    expected = [
        [0.0, 1.0, 0.0, 1.0],
        [0.84147098, 0.54030231, 0.00999983, 0.99995],
        [0.90929743, -0.41614684, 0.01999867, 0.99980001],
    ]
    np.testing.assert_allclose(sinusoidal_positions(jnp.arange(3), 4), expected, atol=1e-6)


def test_equal_tokens_without_positions_get_equal_scores():
    """Attention to embedded tokens alone is to word types; positions tell tokens apart."""
    words = jnp.asarray(np.random.default_rng(0).normal(size=(4, 6)), jnp.float32)
    embedded, mask = words[jnp.asarray([[0, 1, 2, 1]])], jnp.ones((1, 4), bool)
    mechanism = build_mechanism(MECHANISMS.config("bahdanau")(attention_dim=5), 3, 6, 6)
    start = Initialization("uniform", scale=0.7)
    params, query = draw(mechanism.parameters, jax.random.key(0), start), jnp.ones((1, 1, 3))

    def scores(positions):
        config = ENCODERS.find("concatenation").Config(positions=positions)
        encoder = ENCODERS.find("concatenation").build(config, 6)
        weights = draw(encoder.parameters, jax.random.key(1), start)
        encoded = encoder.encode(weights, embedded, mask)
        memory = mechanism.make_memory(params, {"source": encoded})
        return mechanism.attend(params, query, memory)[0].scores[0, 0]

    same = scores("none")
    assert same[1] == same[3] and same[0] != same[2]
    assert scores("learned")[1] != scores("learned")[3]
