"""The alignment module against NumPy."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.layers.aligner import ALIGNERS, AlignerSizes
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.readout import Step

CONFIG = ALIGNERS.config("module")


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_against_numpy():
    """In float64, head after head and slot after slot; what stands at padding counts nothing."""
    rng, (rows, steps, slots, heads, depth) = np.random.default_rng(0), (2, 3, 4, 2, 5)
    sizes = AlignerSizes(memory_dim=6, feature_dim=7, embedding_dim=8)
    aligner = ALIGNERS.find("module").build(CONFIG(num_heads=heads, head_dim=depth), sizes)
    params = {name: rng.normal(size=each.shape) for name, each in aligner.parameters.items()}
    features, words = rng.normal(size=(rows, steps, 7)), rng.normal(size=(rows, steps, 8))
    annotations, lengths = rng.normal(size=(rows, slots, 6)), (4, 2)
    expected = np.zeros((rows, steps, slots))
    for b, t, n in np.ndindex(rows, steps, heads):
        query = features[b, t] @ params["feature_kernel"][:, n]
        query = query + words[b, t] @ params["word_kernel"][:, n]
        real = annotations[b, : lengths[b]] @ params["key_kernel"][:, n]
        expected[b, t, : lengths[b]] += softmax(real @ query / np.sqrt(depth)) / heads
    annotations[1, 2:] = np.nan
    mask = np.arange(slots) < np.asarray(lengths)[:, None]
    params, *given = jax.tree.map(jnp.float32, (params, features, words, annotations))
    prepared = aligner.prepare(params, Encoded(given[2], jnp.asarray(mask)))
    prepared = jax.tree.map(lambda leaf: leaf[:, None], prepared)
    found = aligner.align(params, Step(given[0], None, None, None, word=given[1]), prepared)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
