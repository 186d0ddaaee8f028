"""Copying: small cases, each the value of the formula beside it, in float64."""

import jax.numpy as jnp
import numpy as np

from attention_jax.data.text.extended_vocabulary import extended, own_words
from attention_jax.data.text.vocabulary import SymbolVocabulary
from attention_jax.ops import (
    CopyingPredictions,
    gated_copying,
    joint_softmax,
    pointer_mixture,
    selective_weights,
)
from attention_jax.types import SpecialIds

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


# ---- The numbers of AllenNLP's tests of CopyNet (models/generation/copynet_test.py) -------------
# Their vocabulary has eight ids, which stand behind the special ones here; V is the id of the first
# word beyond it. Their numbers are float32's and hold to six digits.
A, B, C, V = 4, 9, 10, 12


def test_copynet_by_allennlp_likelihood_and_selective_weights():
    """Gold words that are generated and copied, only generated, and only copied.

    log(e^.6 + e^2) - log(e^.1 + ... + e^.8 + e^1 + e^2), the third slot being masked;
    .6 - log(e^.1 + ... + e^.8 + e^1), where no slot that may be copied holds the word;
    log(e^2 + e^3) - log(e^.1 + 7 e^.2 + 2 e^2 + e^3), where the vocabulary lacks it
    """
    rising, flat = np.arange(1, 9) / 10, [0.1, *[0.2] * 7]
    logits = jnp.asarray([[*NOTHING, *row] for row in (rising, rising, flat)])
    scores = jnp.asarray([[1.0, 2.0, 1.0], [1.0, 2.0, 3.0], [2.0, 2.0, 3.0]])
    words = jnp.asarray([[A, B, 0], [A, 0, 0], [V, A, V]])
    gold = jnp.asarray([B, B, V])
    log_generate, log_copy = joint_softmax(logits, scores, words)
    found = CopyingPredictions(logits, log_generate, log_copy, words, jnp.zeros((3, 1), bool))
    np.testing.assert_allclose(
        found.log_prob(gold), [-0.91445613, -2.14705760, -0.48264628], rtol=1e-6
    )
    # (e^2, 0, e^3) / (e^2 + e^3) = (sigmoid(-1), 0, sigmoid(1))
    np.testing.assert_allclose(
        selective_weights(log_copy, words, gold),
        [[0, 1, 0], [0, 0, 0], [0.26894142, 0, 0.73105858]], rtol=1e-6,
    )  # fmt: skip


def test_copynet_by_allennlp_selective_weights_of_duplicates():
    """Slots of one word share the weight, .1 / (.1 + .1) each; a generated word has none."""
    words = jnp.asarray([[C, V, V + 1], [C, V, C], [B, V + 1, V + 1]])
    found = selective_weights(jnp.full((3, 3), np.log(0.1)), words, jnp.asarray([B, C, V + 1]))
    np.testing.assert_allclose(found, [[0, 0, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]], rtol=1e-6)


def test_copynet_by_allennlp_probabilities_are_summed_by_word():
    """Every id is generated with .1, every slot copied with .1.

    C, V, V: p(C) = .1 + .1, p(V) = .1 + .1;  V, B, B: p(B) = .1 + .1 + .1, p(V) = .1
    """
    logits = jnp.asarray([[*NOTHING, *[0.0] * 8]])
    words = jnp.asarray([[C, V, V], [V, B, B]])
    log_generate, log_copy = jnp.full(2, np.log(8 * 0.1)), jnp.full((2, 3), np.log(0.1))
    unknown = jnp.zeros((2, 1), bool)
    logits = jnp.broadcast_to(logits, (2, V))
    found = CopyingPredictions(logits, log_generate, log_copy, words, unknown).log_probs()
    expected = np.full((2, V + 1 - 4), 0.1)
    expected[0, [C - 4, V - 4]], expected[1, B - 4] = 0.2, 0.3
    np.testing.assert_allclose(np.exp(found)[:, 4:], expected, rtol=1e-6)


def test_copynet_by_allennlp_gold_ids_and_predicted_words():
    """Gold is UNK where no source has the word, else the id beyond the vocabulary: [6, V, 6, END].

    An output's ids beyond the vocabulary are the words of its own source, and END ends it.
    """
    target = SymbolVocabulary.train("symbols", ["tokens"])
    (known,), size = target.ids_of(["tokens"]), target.size

    def gold(source, text):
        return extended(target, own_words(target, target, source)).ids_of(text.split())

    assert gold("a b c d", "x tokens") == [SpecialIds.UNK, known]
    assert gold("copied tokens copied it", "tokens copied tokens") == [known, size, known]
    for source, ids, words in (
        ("hello world", [known, size, size + 1, SpecialIds.EOS], "tokens hello world"),
        ("copynet is cool", [known, size + 1, SpecialIds.EOS, SpecialIds.EOS], "tokens is"),
    ):
        assert extended(target, own_words(target, target, source)).decode(ids) == words
