"""Copying against NumPy in float64, word by word, and at the ends of what a float can hold."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops import (
    CopyingPredictions,
    gated_copying,
    joint_softmax,
    log_sum,
    pointer_mixture,
    selective_weights,
)
from tests.quick import quick_jit

V, X = 6, 3
EOS, A, B = 2, 4, 5
# Of two rows: a word of the vocabulary twice, two further words, of which one twice, and an end;
# then a line that is empty but for its end.
WORDS = np.array([[A, V, B, V + 1, A, V, 0], [0, 0, 0, 0, 0, 0, 0]])
T, S = 2, WORDS.shape[1]


def softmax(scores):
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


def drawn():
    rng = np.random.default_rng(3)
    logits, scores = rng.normal(size=(2, T, V)), rng.normal(size=(2, T, S))
    return logits, scores, rng.normal(size=(2, T))


def spread(generated, copied):
    """Adds up probabilities word by word: `V` generated, `S` copied."""
    found = np.zeros((2, T, V + X))
    found[..., :V] = generated
    for row, step, slot in np.ndindex(2, T, S):
        if WORDS[row, slot]:
            found[row, step, WORDS[row, slot]] += copied[row, step, slot]
    return found


def pointed(logits, scores, switch):
    """The pointer-generator in NumPy; what cannot be copied generates."""
    pointing, weights = 1 / (1 + np.exp(switch)), softmax(scores)
    copied = pointing[..., None] * weights * (WORDS > 0)[:, None]
    return spread((1 - copied.sum(-1, keepdims=True)) * softmax(logits), copied)


def copynet(logits, scores, _):
    """CopyNet in NumPy: one normaliser of all exponentials."""
    generated, copied = np.exp(logits), np.exp(scores) * (WORDS > 0)[:, None]
    total = generated.sum(-1) + copied.sum(-1)
    return spread(generated / total[..., None], copied / total[..., None])


def gated(logits, scores, switch):
    """Convolutional copy attention in NumPy: the highest gate of what can be copied decides."""
    can = (WORDS > 0)[:, None]
    surest = np.where(can, switch[..., None] - scores, -np.inf).max(-1)
    copying = np.where(can.any(-1), 1 / (1 + np.exp(-surest)), 0.0)
    shares = np.exp(scores) * can
    shares /= np.maximum(shares.sum(-1, keepdims=True), 1e-300)
    return spread((1 - copying)[..., None] * softmax(logits), copying[..., None] * shares)


def predictions(kind, *arrays):
    logits, scores, switch = map(jnp.asarray, arrays)
    words = jnp.broadcast_to(jnp.asarray(WORDS)[:, None], scores.shape)
    if kind == "pointer":
        ways = pointer_mixture(switch, jax.nn.softmax(scores), words)
    elif kind == "gated":
        ways = gated_copying(scores, switch[..., None] - scores, words)
    else:
        ways = joint_softmax(logits, scores, words)
    return CopyingPredictions(logits, *ways, words[:, :1], jnp.zeros((2, 1, X), bool))


REFERENCES = {"pointer": pointed, "copynet": copynet, "gated": gated}
each_kind = pytest.mark.parametrize("kind", REFERENCES)


@each_kind
def test_words_have_the_sum_of_all_ways_to_write_them(kind):
    """Duplicates are summed, and words beyond the vocabulary do not collapse into one."""
    given = drawn()
    found = predictions(kind, *map(jnp.asarray, given))
    expected = REFERENCES[kind](*given)
    probabilities = np.exp(found.log_probs())
    assert found.size == V + X and probabilities.shape == (2, T, V + X)
    np.testing.assert_allclose(probabilities, expected, rtol=2e-6, atol=1e-9)
    np.testing.assert_allclose(probabilities.sum(-1), 1, atol=1e-6)
    assert (probabilities[0, :, V] > 0).all() and (probabilities[0, :, V + 2] == 0).all()
    for word in (A, EOS, V, V + 1):
        log_prob = found.log_prob(jnp.full((2, T), word))
        np.testing.assert_allclose(np.exp(log_prob), expected[..., word], rtol=2e-6, atol=1e-9)


@each_kind
def test_the_end_of_the_source_is_never_copied(kind):
    """Its slot has an id of none: all of its probability is that of generating."""
    logits, scores, switch = drawn()
    generated, copied = predictions(kind, logits, scores, switch).origins(jnp.full((2, T), EOS))
    assert not copied.any()
    np.testing.assert_allclose(
        generated, REFERENCES[kind](logits, scores, switch)[..., EOS], rtol=2e-6
    )


@each_kind
def test_ways_of_a_word_add_up_to_it(kind):
    found = predictions(kind, *map(jnp.asarray, drawn()))
    for word in (A, V, V + 1):
        targets = jnp.full((2, T), word)
        generated, copied = found.origins(targets)
        total = generated + copied.sum(-1)
        np.testing.assert_allclose(total, np.exp(found.log_prob(targets)), rtol=1e-5)
        held = copied[0] > 0
        assert (held == (WORDS[0] == word)).all()
        assert (generated > 0).all() if word < V else not generated.any()


@each_kind
def test_numbers_and_gradients_are_finite_at_the_ends_of_the_switch(kind):
    """For p_gen of 0 and of 1, and for an empty line, of which nothing can be copied."""
    logits, scores, _ = map(jnp.asarray, drawn())
    targets = jnp.asarray([[A, V], [EOS, EOS]])  # of an empty line, an empty output

    def loss(logits, scores, switch):
        compared = scores - switch[..., None] if kind == "copynet" else scores
        found = predictions(kind, logits, compared, switch)
        mask = jnp.ones((2, T), bool)
        return found.cross_entropy(targets, mask, label_smoothing=0.1).sum(), found.log_probs()

    value_and_slopes = quick_jit(jax.value_and_grad(loss, (0, 1, 2), has_aux=True))
    for logit in (-1e4, -200.0, 200.0, 1e4):
        (value, log_probs), slopes = value_and_slopes(logits, scores, jnp.full((2, T), logit))
        assert np.isfinite(value) and all(np.isfinite(slope).all() for slope in slopes)
        np.testing.assert_allclose(np.exp(log_probs).sum(-1), 1, atol=1e-6)
        empty = np.exp(log_probs[1, :, :V])
        np.testing.assert_allclose(empty, jax.nn.softmax(logits[1]), rtol=1e-5)


def test_a_word_that_attention_has_left_out_costs_no_infinity():
    """Sparse attention gives slots nothing at all; the gold word may be one of these."""
    weights = jnp.asarray([[0.0, 1.0]])
    log_generate, log_copy = pointer_mixture(jnp.zeros(1), weights, jnp.asarray([[V, A]]))
    np.testing.assert_allclose(log_copy, np.log([[0.5e-10, 0.5]]), rtol=1e-5)
    np.testing.assert_allclose(log_generate, np.log(0.5), rtol=1e-6)


def test_two_softmaxes_are_not_copynet():
    """One normaliser: a higher copy score takes from every word of the vocabulary alike."""
    logits, scores, _ = drawn()
    higher = scores + 1.0 * (WORDS == V + 1)[:, None]
    before, after = (np.exp(predictions("copynet", logits, each, 0.0).log_probs())
                     for each in (scores, higher))  # fmt: skip
    ratio = after[0, :, : V + 1] / before[0, :, : V + 1]
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[:, :1], ratio.shape), rtol=1e-5)
    assert (ratio < 0.99).all() and (after[0, :, V + 1] > before[0, :, V + 1]).all()


def test_the_selective_read_is_of_the_slots_of_the_written_word():
    scores = jnp.asarray(drawn()[1][:1, 0])
    found = selective_weights(scores, jnp.asarray(WORDS[:1]), jnp.asarray([V]))
    expected = np.exp(scores[0]) * (WORDS[0] == V)
    np.testing.assert_allclose(found[0], expected / expected.sum(), rtol=1e-6)
    for absent in (EOS, 0, V + 2):
        assert not selective_weights(scores, jnp.asarray(WORDS[:1]), jnp.asarray([absent])).any()
    absent = jnp.asarray([EOS])
    slope = jax.grad(lambda s: selective_weights(s, jnp.asarray(WORDS[:1]), absent).sum())(scores)
    assert np.isfinite(slope).all()


def test_the_sum_of_nothing_is_impossible():
    impossible = jnp.full((1, 2), -jnp.inf)
    assert log_sum(impossible).tolist() == [-np.inf] and log_sum(impossible[:, :0]) == -np.inf
    assert not jax.grad(lambda values: log_sum(values).sum())(impossible).any()
