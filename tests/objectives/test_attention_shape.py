"""The shape of attention: against NumPy, at its extremes, and with padding of any kind."""

import jax.numpy as jnp
import numpy as np

from attention_jax.objectives.attention_shape import attention_shape
from attention_jax.types import AttentionOutput, ModelOutput

LENGTHS = (6, 4, 1, 5)  # of sources
TARGETS = (5, 6, 3, 0)  # of targets; the last row only fills the batch
B, T, S = len(LENGTHS), 6, 6


def batch():
    source = np.arange(S) < np.array(LENGTHS)[:, None]
    target = np.arange(T) < np.array(TARGETS)[:, None]
    ids = jnp.full((B, S), 5)
    return {
        "source": ids, "source_mask": jnp.asarray(source),
        "target": ids, "target_mask": jnp.asarray(target),
    }  # fmt: skip


def measured(weights):
    weights = jnp.asarray(weights, jnp.float32)
    output = ModelOutput(None, AttentionOutput(weights, weights, weights))
    pairs = attention_shape(output, batch())
    return {name: (float(total), float(count)) for name, (total, count) in pairs.items()}


def in_numpy(weights):
    """The same, a sentence and a token at a time, in float64."""
    entropies, diagonals, largest = [], [], []
    for row, (slots, tokens) in enumerate(zip(LENGTHS, TARGETS, strict=True)):
        if slots < 2:
            continue
        shares = [each[:slots] / each[:slots].sum() for each in weights[row, :tokens]
                  if each[:slots].sum() > 0]  # fmt: skip
        entropies += [-(p[p > 0] * np.log(p[p > 0])).sum() / np.log(slots) for p in shares]
        diagonals += [p[t] for t, p in enumerate(shares) if t < slots]
        if len(shares) >= 4 <= slots:
            largest.append(np.mean(shares, axis=0).max())
    return {
        "attention/entropy": (sum(entropies), len(entropies)),
        "attention/one_slot": (sum(largest), len(largest)),
        "attention/diagonal": (sum(diagonals), len(diagonals)),
    }


def test_it_is_what_numpy_computes():
    weights = np.random.default_rng(0).random((B, T, S)) ** 3
    found, expected = measured(weights), in_numpy(weights)
    assert expected["attention/one_slot"][1] == 2  # two sentences are long enough
    for name, pair in expected.items():
        np.testing.assert_allclose(found[name], pair, rtol=1e-5)
    weights[:, :, 4:] = np.where(np.arange(B)[:, None, None] == 1, np.nan, weights[:, :, 4:])
    weights[3] = np.nan
    assert measured(weights) == found


def test_its_extremes_are_zero_and_one():
    mean = lambda weights: {k: a / b for k, (a, b) in measured(weights).items()}  # noqa: E731
    assert np.isclose(mean(np.ones((B, T, S)))["attention/entropy"], 1)
    one = mean(np.eye(S)[np.full((B, T), 2)])
    assert np.isclose(one["attention/one_slot"], 1) and np.isclose(one["attention/entropy"], 0)
    diagonal = mean(np.broadcast_to(np.eye(T, S), (B, T, S)))
    assert np.isclose(diagonal["attention/diagonal"], 1) and diagonal["attention/one_slot"] < 0.3
    assert measured(np.zeros((B, T, S)))["attention/entropy"] == (0, 0)
