"""The full-context aligner against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.layers.aligner import ALIGNERS, AlignerSizes
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.readout import Step
from tests.layers.aligners.test_module import softmax
from tests.ops.test_recurrent import sigmoid

CONFIG = ALIGNERS.config("full_context")


def read(params, vectors):
    """A GRU, reset after the product, over `N E` in float64."""
    depth = params["candidate_bias"].shape[0]
    hidden, found = np.zeros(depth), []
    for vector in vectors:
        given = vector @ params["input"] + params["bias"]
        recurrent = hidden @ params["recurrent"]
        reset = sigmoid(given[:depth] + recurrent[:depth])
        update = sigmoid(given[depth : 2 * depth] + recurrent[depth : 2 * depth])
        inner = recurrent[2 * depth :] + params["candidate_bias"]
        hidden = update * hidden + (1 - update) * np.tanh(given[2 * depth :] + reset * inner)
        found.append(hidden)
    return np.array(found)


def contextual(params, vectors):
    forward = read(params["reader"]["layer_0_forward"], vectors)
    backward = read(params["reader"]["layer_0_backward"], vectors[::-1])[::-1]
    context = np.concatenate([forward, backward], axis=-1)
    return context @ params["context_kernel"] + vectors @ params["word_kernel"]


def test_against_numpy():
    """In float64, pair after pair without padding; what stands at padding counts nothing."""
    rng, (rows, steps, slots) = np.random.default_rng(0), (2, 3, 4)
    sizes = AlignerSizes(memory_dim=6, feature_dim=7, embedding_dim=8)
    config = CONFIG(hidden_dim=3, attention_dim=5, two_way=True)
    aligner = ALIGNERS.find("full_context").build(config, sizes)
    params = jax.tree.map(lambda each: rng.normal(size=each.shape), dict(aligner.parameters))
    words, annotations = rng.normal(size=(rows, steps, 8)), rng.normal(size=(rows, slots, 6))
    target_lengths, source_lengths = (3, 2), (4, 2)
    expected, opposite = np.zeros((rows, steps, slots)), np.zeros((rows, slots, steps))
    for row, (length, size) in enumerate(zip(target_lengths, source_lengths, strict=True)):
        queries = contextual(params["target"], words[row, :length])
        keys = contextual(params["source"], annotations[row, :size])
        expected[row, :length, :size] = softmax(queries @ keys.T / np.sqrt(5))
        opposite[row, :size, :length] = softmax(keys @ queries.T / np.sqrt(5))
    words[1, 2:], annotations[1, 2:] = np.nan, np.nan
    masks = [np.arange(size) < np.array(lengths)[:, None]
             for size, lengths in ((steps, target_lengths), (slots, source_lengths))]  # fmt: skip
    params, words, annotations = jax.tree.map(jnp.float32, (params, words, annotations))
    prepared = aligner.prepare(params, Encoded(annotations, jnp.asarray(masks[1])))
    prepared = jax.tree.map(lambda leaf: leaf[:, None], prepared)
    step = Step(jnp.zeros((rows, steps, 7)), None, None, None, word=words)
    found = np.asarray(aligner.run(params, step, jnp.asarray(masks[0]), prepared))
    np.testing.assert_allclose(found[masks[0]], expected[masks[0]], rtol=1e-4, atol=1e-6)
    both = aligner.run_both_ways(params, step, jnp.asarray(masks[0]), prepared)
    np.testing.assert_array_equal(both[0], found)
    np.testing.assert_allclose(both[1], opposite, rtol=1e-4, atol=1e-6)
