"""Numbers of TensorFlow Addons: a decoder with attention, step by step, beside its expected means.

Seven tests of `attention_wrapper_test.py` (TensorFlow Addons 0.20): an LSTM reads a word and the
last attentional vector; its state asks the memory, and a dense layer joins both. Memory and words
are NumPy's of a seed, all kernels are ones but that of the dense layer, which is TensorFlow's
uniform draw of the seeds 87654321 and 1337 (`tf_addons_kernel.txt`).
"""

import functools
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.configuration import typed
from attention_jax.layers.attention import build_mechanism
from attention_jax.layers.encoder import sequence
from attention_jax.layers.mechanism import MECHANISMS

B, S, STEPS, WORD, SLOT, CELL = 5, 8, 3, 7, 10, 9
ADDITIVE = {"name": "bahdanau", "attention_dim": 3}
NORMED = {"name": "normed_bahdanau", "attention_dim": 3}
GENERAL = {"name": "luong_general"}  # whose kernel takes the place of the memory layer


def monotonic(score):
    return {"name": "monotonic", "score": score, "noise": 0.0, "initial_bias": 0.0,
            "evaluation": "expected"}  # fmt: skip


# Attention; whether a dense layer joins state and context; the expected means: of the outputs,
# of h, c, attention and weights of the last step, and of all weights.
CASES = {
    "bahdanau": (ADDITIVE, True, (-0.003204414, 0.40868404, 0.89017969, 0.041453815, 0.125, 0.125)),
    "bahdanau, normalised": (
        NORMED, True, (-0.008089137, 0.49166861, 1.01068615, 0.042427111, 0.125, 0.125)
    ),
    "luong": (GENERAL, True, (-0.06124732, 0.52021580, 1.0964939, -0.0318060, 0.125, 0.125)),
    "without a layer": (
        ADDITIVE, False, (0.078317143, 0.89382392, 1.722382, 0.026356646, 0.125, 0.125)
    ),
    "bahdanau, monotonic": (
        monotonic(ADDITIVE), True,
        (-0.009921653, 0.44612807, 0.95786464, 0.038682378, 0.09778417, 0.10261579603),
    ),
    "bahdanau, normalised, monotonic": (
        monotonic(NORMED), True,
        (0.007140680, 0.47012400, 1.0249618, 0.068432882, 0.0615656, 0.07909643),
    ),
}  # fmt: skip


@functools.cache
def drawn():
    """Words `B 4 7`, memory `B S 10` and its mask, as NumPy draws them after what comes before."""
    rng = np.random.RandomState(87654321)
    rng.randn(64, 10, 256), rng.randint(1, high=10, size=64)
    rng.randn(64, 12, 128), rng.randint(12, size=64)
    words, slots = rng.randn(B, 4, WORD), rng.randn(B, S, SLOT)
    mask = np.arange(S) < np.array([3, 2, 3, 1, 1])[:, None]
    return words, slots * mask[..., None], mask


def lstm(inputs, hidden, cell):
    """An LSTM all of whose kernels are ones, and whose forget gate has a bias of one."""
    gate = inputs.sum(-1, keepdims=True) + hidden.sum(-1, keepdims=True)
    opened, kept = 1 / (1 + np.exp(-gate)), 1 / (1 + np.exp(-gate - 1))
    cell = kept * cell + opened * np.tanh(gate)
    return opened * np.tanh(cell), cell


def means(answer, has_layer=True):
    """Decodes three steps and returns the means; `answer` has (context, weights) of a query."""
    words = drawn()[0]
    kernel = np.loadtxt(Path(__file__).with_name("tf_addons_kernel.txt"))
    hidden, cell = np.zeros((B, CELL)), np.zeros((B, CELL))
    vectors, weights = [np.zeros((B, kernel.shape[1] if has_layer else SLOT))], []
    for step in range(STEPS):
        inputs = np.concatenate([words[:, step], vectors[-1]], axis=-1)
        hidden, cell = lstm(inputs, hidden, cell)
        context, given = answer(hidden)
        joined = np.concatenate([hidden, context], axis=-1)
        vectors.append(joined @ kernel if has_layer else context)
        weights.append(given)
    last = hidden, cell, vectors[-1], weights[-1]
    return [np.mean(vectors[1:]), *map(np.mean, last), np.mean(weights)]


def attending(fields):
    """Returns the function that answers a query by a mechanism all of whose kernels are ones."""
    _, slots, mask = drawn()
    config = typed(MECHANISMS.config(fields["name"]), fields, "attention")
    mechanism = build_mechanism(config, CELL, SLOT, SLOT)
    starts = {"gain": 3**-0.5, "bias": 0.0, "stop_bias": 0.0}
    params = {
        name: jnp.full(parameter.shape, starts.get(name, 1.0))
        for name, parameter in mechanism.parameters.items()
    }
    source = sequence(jnp.asarray(slots, jnp.float32), jnp.asarray(mask))
    memory = mechanism.make_memory(params, source)
    state = mechanism.init_state(params, memory)

    def answer(hidden):
        nonlocal state
        query = jnp.asarray(hidden[:, None], jnp.float32)
        output, state = mechanism.attend(params, query, memory, state)
        return np.asarray(output.context[:, 0], np.float64), np.asarray(output.weights[:, 0])

    return answer


@pytest.mark.parametrize("name", CASES)
def test_means_are_those_of_the_attention_wrapper(name):
    fields, has_layer, expected = CASES[name]
    np.testing.assert_allclose(means(attending(fields), has_layer), expected, atol=2e-6)


def test_what_their_parallel_mode_clips_is_not_clipped_here():
    """With scores as large as Luong's here, so little passes a slot that 1e-10 is added to it."""
    clipped = (0.003664831, 0.54318606, 1.12592840, 0.059128221, 0.05112994, 0.06994973868)
    np.testing.assert_allclose(means(monotonic_answers(is_clipped=True)), clipped, atol=2e-6)
    exact = means(monotonic_answers(is_clipped=False))
    assert np.abs(np.subtract(exact, clipped)).max() > 0.009
    np.testing.assert_allclose(means(attending(monotonic(GENERAL))), exact, atol=2e-6)


def monotonic_answers(is_clipped):
    """The expected alignment in NumPy: as their parallel mode has it, or slot after slot."""
    _, slots, mask = drawn()
    before = np.eye(S)[np.zeros(B, int)]  # the first slot

    def answer(hidden):
        nonlocal before
        scores = slots.sum(-1) * hidden.sum(-1, keepdims=True)
        stops = np.where(mask, 1 / (1 + np.exp(-scores)), 0.0)
        passing = np.cumprod(np.concatenate([np.ones((B, 1)), 1 - stops[:, :-1]], axis=1), axis=1)
        if is_clipped:
            reached = passing * np.cumsum(before / np.clip(passing, 1e-10, 1.0), axis=1)
        else:
            reached = np.zeros((B, S))
            for slot in range(S):
                passed = (1 - stops[:, slot - 1]) * reached[:, slot - 1] if slot else 0.0
                reached[:, slot] = before[:, slot] + passed
        before = stops * reached
        return np.einsum("bs,bsd->bd", before, slots), before

    return answer
