"""Monotonic attention worked out by hand, and beside the numbers of another library's tests."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.ops.monotonic import chunk_attention, expected_alignment, hard_alignment

STOPS = ((0.1, 0.5, 0.3, 0.9), (0.2, 0.4, 0.8, 0.5), (0.6, 0.7, 0.1, 0.2))
ALIGNMENTS = (
    (0.1, 0.45, 0.135, 0.2835), (0.02, 0.212, 0.3624, 0.18705), (0.012, 0.154, 0.04284, 0.114522)
)  # fmt: skip
FIRST = (1.0, 0.0, 0.0, 0.0)


def test_expected_alignments():
    """a_1[1] = (1 - .1) .5, and so on: sums .9685, .78145 and .323362."""
    before = jnp.asarray(FIRST)
    for stop, expected in zip(STOPS, ALIGNMENTS, strict=True):
        before = expected_alignment(jnp.asarray(stop), before)
        np.testing.assert_allclose(before, expected, rtol=1e-6)


def test_decisions():
    """The first query stops at the last slot; from there on nothing is above one half."""
    found, before = [], jnp.asarray(FIRST)
    for stop in STOPS:
        row = hard_alignment(jnp.asarray(stop) > 0.5, before)
        found.append(row)
        before = row if row.any() else before
    np.testing.assert_array_equal(found, [[0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]])


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (1, ALIGNMENTS[1]),
        (2, (0.07701558, 0.47418528, 0.05207015, 0.17817899)),
        (None, (0.18200552, 0.44037667, 0.03862364, 0.12044416)),
    ],
)
def test_chunks(window, expected):
    energies, mask = jnp.asarray([0.0, 1.0, -1.0, 2.0]), jnp.ones(4, bool)
    found = chunk_attention(jnp.asarray(ALIGNMENTS[1]), energies, mask, window)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_what_a_quotient_of_clipped_products_gets_wrong():
    """Exactly [0, 0, .5] and .5; clipped products give [0, 0, 0] and 4e-9."""
    found = expected_alignment(jnp.asarray([1.0, 0.5, 0.5]), jnp.asarray([0.0, 0.0, 1.0]))
    np.testing.assert_array_equal(found, [0, 0, 0.5])
    late = expected_alignment(jnp.full(64, 0.5), jnp.asarray(np.eye(64)[60], jnp.float32))
    assert late[60] == 0.5


# ---- lingvo: attention_test.py, testMonotonicAttention -------------------------------------------
PROBABILITIES = (
    (0.03654566, 0.05925026, 0.0, 0.0, 0.20958641, 0.19560105),
    (0.0, 0.09670404, 0.13182665, 0.13221622, 0.0, 0.18074416),
    (0.04112773, 0.07072841, 0.0, 0.13837409, 0.0, 0.23935230),
)
CONTEXTS = (
    (0.2937718, 0.30372939, 0.27034321, 0.31328040, 0.19393572),
    (0.2553753, 0.26388022, 0.20429659, 0.47469878, 0.27512118),
    (0.33394262, 0.1191523, 0.22405925, 0.21366173, 0.03946214),
)
PADDING = ((0, 0, 1, 1, 0, 0), (1, 0, 0, 0, 1, 0), (0, 0, 1, 0, 1, 0))
_WORD = 0xFFFFFFFF


def philox(counter, seed, op_seed):
    """Four random words of Philox 4x32-10 (Salmon et al. 2011), as TensorFlow numbers them."""
    words, keys = [counter, 0, op_seed, 0], [seed, 0]
    for _ in range(10):
        left, right = 0xD2511F53 * words[0], 0xCD9E8D57 * words[2]
        words = [
            (right >> 32) ^ words[1] ^ keys[0], right & _WORD,
            (left >> 32) ^ words[3] ^ keys[1], left & _WORD,
        ]  # fmt: skip
        keys = [(keys[0] + 0x9E3779B9) & _WORD, (keys[1] + 0xBB67AE85) & _WORD]
    return words


def gaussians(*shape, deviation=0.1, seed=87654321, op_seed=12345):
    """What TensorFlow draws, by Box and Muller, with its seed of graphs and another."""
    size, drawn = int(np.prod(shape)), []
    for counter in range(-(-size // 4)):
        uniform = [(word & 0x7FFFFF) / 2**23 for word in philox(counter, seed, op_seed)]
        for radius, angle in (uniform[:2], uniform[2:]):
            length = np.sqrt(-2 * np.log(max(radius, 1e-7)))
            drawn += [length * np.sin(2 * np.pi * angle), length * np.cos(2 * np.pi * angle)]
    return deviation * np.array(drawn[:size]).reshape(shape)


def test_lingvo_finds_the_same_probabilities_and_contexts():
    """Every variable draws from one seed; g = 1 / sqrt(7), b = 0 and r = -1, as they start."""
    drawn = np.random.RandomState(12345)
    keys, values = drawn.rand(6, 3, 4), drawn.rand(6, 3, 5)  # time-major
    query, scores = drawn.rand(3, 7), drawn.rand(3, 6)
    config = MECHANISMS.config("monotonic")(
        score=MECHANISMS.config("normed_bahdanau")(attention_dim=7), evaluation="expected"
    )
    mechanism = build_mechanism(config, 7, 4, 5)
    params = {
        "key_kernel": gaussians(4, 7), "query_kernel": gaussians(7, 7), "vector": gaussians(7),
        "bias": np.zeros(7), **_starts(mechanism),
    }  # fmt: skip
    query, keys, values = (
        jnp.asarray(array, jnp.float32)
        for array in (query[:, None], np.swapaxes(keys, 0, 1), np.swapaxes(values, 0, 1))
    )
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), params)
    mask = jnp.asarray(PADDING) == 0
    memory = mechanism.make_memory(params, sequence(keys, mask, values=values))
    state = {"previous_alignment": jax.nn.softmax(jnp.asarray(scores, jnp.float32))}
    output, after = mechanism.attend(params, query, memory, state)
    np.testing.assert_allclose(output.weights[:, 0], PROBABILITIES, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(output.context[:, 0], CONTEXTS, rtol=1e-5)
    np.testing.assert_array_equal(after["previous_alignment"], output.weights[:, 0])


def _starts(mechanism):
    parameters = mechanism.parameters
    return {name: parameters[name].start for name in ("gain", "stop_bias")}
