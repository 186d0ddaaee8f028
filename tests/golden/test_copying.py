"""Copying: small cases, each the value of the formula beside it, in float64."""

import jax.numpy as jnp
import numpy as np

from attention_jax.ops import (
    CopyingPredictions,
    gated_copying,
    joint_softmax,
    pointer_mixture,
    selective_weights,
)

# Ids below 4 are those of special tokens, which the cases do without: -1e9 leaves them nothing.
NOTHING = [-1e9] * 4


def test_copynet():
    """psi_g = [1, 0, -1] of A, B, UNK; psi_c = [.5, 2, -.5] of B, Z, B; Z is no known word.

    Z_all = e + 1 + 1/e + e^.5 + e^2 + e^-.5 = 13.7304; p(B) = (1 + e^.5 + e^-.5) / Z_all
    """
    known, (a, b, unknown, z) = [1.0, 0.0, -1.0], range(4, 8)
    logits = jnp.asarray([[[*NOTHING, *known]]])
    words, scores = jnp.asarray([[[b, z, b]]]), jnp.asarray([[[0.5, 2.0, -0.5]]])
    log_generate, log_copy = joint_softmax(logits, scores, words)
    found = CopyingPredictions(
        logits, log_generate, log_copy, words, jnp.zeros((1, 1, 1), bool)
    ).log_probs()[0, 0]
    np.testing.assert_allclose(
        np.exp(found)[[a, b, z, unknown]],
        [0.19797443, 0.23708235, 0.53815029, 0.02679293], rtol=1e-6,
    )  # fmt: skip
    # e^.5 / (e^.5 + e^-.5) = sigmoid(1)
    weights = selective_weights(log_copy[0], words[0], jnp.asarray([b]))
    np.testing.assert_allclose(weights[0], [0.73105858, 0, 0.26894142], rtol=1e-6)


def test_pointer_generator():
    """p_gen = .6, P_vocab = [.1, .2, .7], a = [.5, .3, .2] of words 1, 3, 1, of which 3 is new.

    P = [.6 * .1, .6 * .2 + .4 * .7, .6 * .7, .4 * .3]
    """
    logits = jnp.asarray([[[*NOTHING, *np.log([0.1, 0.2, 0.7])]]])
    words, weights = jnp.asarray([[[5, 7, 5]]]), jnp.asarray([[[0.5, 0.3, 0.2]]])
    ways = pointer_mixture(jnp.full((1, 1), np.log(0.6 / 0.4)), weights, words)
    found = CopyingPredictions(logits, *ways, words, jnp.zeros((1, 1, 1), bool)).log_probs()[0, 0]
    np.testing.assert_allclose(np.exp(found)[4:], [0.06, 0.4, 0.42, 0.12], rtol=1e-6)


def test_convolutional_copy_attention():
    """lambda = .25, kappa = [.4, .1, .2, .3] of the code a, b, a, c, P_vocab(a) = .1; c is new.

    p(a) = .75 * .1 + .25 * (.4 + .2), p(c) = .25 * .3; the surest place alone is lambda.
    """
    logits = jnp.asarray([[[*NOTHING, *np.log([0.1, 0.9])]]])
    words, kappa = jnp.asarray([[[4, 5, 4, 6]]]), np.array([[[0.4, 0.1, 0.2, 0.3]]])
    lambdas = np.array([[[0.1, 0.25, 0.2, 0.05]]])
    gates = jnp.asarray(np.log(lambdas / (1 - lambdas)))
    ways = gated_copying(jnp.log(kappa), gates, words)
    found = CopyingPredictions(logits, *ways, words, jnp.zeros((1, 1, 1), bool)).log_probs()[0, 0]
    np.testing.assert_allclose(
        np.exp(found)[4:], [0.225, 0.75 * 0.9 + 0.25 * 0.1, 0.075], rtol=1e-6
    )
