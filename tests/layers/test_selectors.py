"""Selectors against their equations in NumPy, and their derivatives against finite differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.layers.selector import SELECTORS
from attention_jax.types import Call

D, H = 4, 3
LENGTHS = np.array([[3, 2], [1, 0]])  # words of each sentence, of two documents
MASK = np.arange(3) < LENGTHS[..., None]  # B N L
TRAIN = Call(True, jax.random.key(5))
every_selector = pytest.mark.parametrize("name", SELECTORS.names())


def build(name):
    values = {"hidden_dim": H} if name == "recurrent" else {}
    return SELECTORS.find(name).build(SELECTORS.config(name)(**values), D)


def draw(name, rng):
    def filled(tree):
        return {key: filled(leaf) if isinstance(leaf, dict) else rng.normal(size=leaf.shape)
                for key, leaf in tree.items()}  # fmt: skip

    return filled(build(name).parameters), rng.normal(size=(*MASK.shape, D))


def f32(tree):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)


def select(name, params, annotations, call):
    return build(name).select(f32(params), f32(annotations), jnp.asarray(MASK), call)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def remembered(cell, state, entering):
    """GRU in float64, reset after the product."""
    x_r, x_z, x_n = np.split(entering @ cell["input"] + cell["bias"], 3)
    h_r, h_z, h_n = np.split(state @ cell["recurrent"], 3)
    z = sigmoid(x_z + h_z)
    candidate = np.tanh(x_n + sigmoid(x_r + h_r) * (h_n + cell["candidate_bias"]))
    return z * state + (1 - z) * candidate


def bernoulli(params, annotations, uniform, given=None):
    """Returns selections and log p by loops; `given` ones are kept in place of drawn ones.

    Without uniform numbers the most probable words, as many as are expected.
    """
    z, each = np.zeros(MASK.shape), np.full(MASK.shape, 0.0)
    for document, sentence in np.ndindex(LENGTHS.shape):
        state = np.zeros(H)
        for t in range(LENGTHS[document, sentence]):
            place, h = (document, sentence, t), annotations[document, sentence, t]
            p = h @ params["kernel"][:, 0] + params["bias"][0]
            if "memory" in params:
                p = p + state @ params["memory"][:, 0]
            p = each[place] = sigmoid(p)
            drawn = p if uniform is None else uniform[place] < p
            z[place] = drawn if given is None else given[place]
            if "memory" in params:
                state = remembered(params["cell"], state, np.append(h, z[place]))
    if uniform is None:
        for document in range(len(MASK)):
            words = [tuple(place) for place in np.argwhere(MASK[document])]
            z[document] = 0
            words.sort(key=lambda place: -each[document][place])
            for place in words[: round(each[document].sum())]:
                z[document][place] = 1
    log_prob = np.where(MASK, np.log(np.where(z, each, 1 - each)), 0).sum((1, 2))
    return z, log_prob


def hard_kuma(params, annotations, uniform):
    """Returns samples, or decisions, and the probability that each word is read."""
    a, b = np.moveaxis(np.log1p(np.exp(annotations @ params["kernel"] + params["bias"])), -1, 0)

    def stretched(u):
        return 1.2 * (1 - (1 - u) ** (1 / b)) ** (1 / a) - 0.1

    zero, one = 1 - (1 - (1 / 12) ** a) ** b, (1 - (11 / 12) ** a) ** b
    if uniform is not None:
        return np.clip(stretched(uniform), 0, 1) * MASK, (1 - zero) * MASK
    mean = np.mean([stretched(u) for u in (np.arange(20_000) + 0.5) / 20_000], axis=0)
    between = 1 - zero - one > np.maximum(zero, one)
    return np.where(between, np.clip(mean, 0, 1), one > zero) * MASK, (1 - zero) * MASK


def changes(share):
    """Expected changes from word to word, sentences of a document one after the other."""
    flat = [p[mask] for p, mask in zip(share, MASK, strict=True)]
    return np.array([(p[1:] * (1 - p[:-1]) + (1 - p[1:]) * p[:-1]).sum() for p in flat])


def uniforms(name):
    shape = (MASK.size // MASK.shape[-1], MASK.shape[-1]) if name == "recurrent" else MASK.shape
    return np.asarray(jax.random.uniform(TRAIN.rng, shape)).astype(float).reshape(MASK.shape)


@every_selector
@pytest.mark.parametrize("train", [True, False])
def test_selection_equals_the_equations(name, train, numpy_rng):
    params, annotations = draw(name, numpy_rng)
    found = select(name, params, annotations, TRAIN if train else Call())
    uniform = uniforms(name) if train else None
    if name == "hard_kuma":
        expected, share = hard_kuma(params, annotations, uniform)
        log_prob = np.zeros(len(MASK))
    else:
        expected, log_prob = bernoulli(params, annotations, uniform)
        share = expected
    np.testing.assert_allclose(found.selected, expected, atol=2e-5)
    assert 0 < expected.sum() < LENGTHS.sum()
    np.testing.assert_allclose(found.log_prob, log_prob, rtol=1e-4)
    np.testing.assert_allclose(found.count, share.sum((1, 2)), rtol=1e-4)
    np.testing.assert_allclose(found.changes, changes(share), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found.words, LENGTHS.sum(1))


@every_selector
def test_derivatives_are_finite_differences(name, numpy_rng):
    """Of log p with what was drawn held fixed, or of HardKuma's samples and expected numbers."""
    params, annotations = draw(name, numpy_rng)
    uniform, factors = uniforms(name), numpy_rng.normal(size=MASK.shape)
    given = None if name == "hard_kuma" else bernoulli(params, annotations, uniform)[0]

    def exact(params):
        if given is not None:
            return bernoulli(params, annotations, uniform, given)[1].sum()
        selected, share = hard_kuma(params, annotations, uniform)
        return (factors * selected).sum() + share.sum() + changes(share).sum()

    def computed(params):
        found = build(name).select(params, f32(annotations), jnp.asarray(MASK), TRAIN)
        if given is not None:
            return found.log_prob.sum()
        return (f32(factors) * found.selected).sum() + (found.count + found.changes).sum()

    gradient = jax.tree.leaves(jax.grad(computed)(f32(params)))
    leaves, structure = jax.tree.flatten(params)
    for number, leaf in enumerate(leaves):
        direction = numpy_rng.normal(size=leaf.shape)
        ahead, behind = (
            exact(jax.tree.unflatten(
                structure, [*leaves[:number], leaf + step * direction, *leaves[number + 1 :]]
            ))
            for step in (1e-5, -1e-5)
        )  # fmt: skip
        found = (np.asarray(gradient[number]) * direction).sum()
        np.testing.assert_allclose(found, (ahead - behind) / 2e-5, rtol=1e-3, atol=1e-4)
