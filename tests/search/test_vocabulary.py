"""Which tokens a search may write: what predictions leave out, and what stays as probable."""

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.ops.copying import CopyingPredictions
from attention_jax.ops.ensemble_predictions import EnsemblePredictions
from attention_jax.ops.predictions import LimitedPredictions, SoftmaxPredictions
from attention_jax.search import SearchConfig
from attention_jax.search.vocabulary import searched_scores
from attention_jax.types import SpecialIds

PAD, UNK, V = SpecialIds.PAD, SpecialIds.UNK, 6
LOGITS = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, V)), jnp.float32)
WORDS = jnp.asarray([[[4, V, 0]], [[4, 5, 4]]])  # B 1 S; the first row has a word of its own


def copying(logits=LOGITS):
    """One half is generated, the other copied."""
    half = jnp.full((2, 3), np.log(0.5))
    copied = jnp.where(WORDS > 0, np.log(0.25), -jnp.inf)
    log_copy = jnp.broadcast_to(copied, (2, 3, 3))
    return CopyingPredictions(logits, half, log_copy, WORDS, jnp.zeros((2, 1, 1), bool))


def compare(predictions, left_out):
    """Compares what a search ranks with the predictions' own scores, but for some (row, id)."""
    scores, normalizer = predictions.scores()
    found, same = searched_scores(predictions, SearchConfig())
    expected = np.array(scores)
    for row, id in left_out:
        assert np.isfinite(expected[row, :, id]).all()
        expected[row, :, id] = -np.inf
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(same, normalizer)


def test_nothing_is_left_out_of_a_softmax():
    compare(SoftmaxPredictions(LOGITS), [])
    compare(EnsemblePredictions([SoftmaxPredictions(LOGITS)] * 2), [])


def test_unknown_is_left_out_beside_a_source_with_words_of_its_own():
    compare(copying(), [(0, UNK)])


@pytest.mark.parametrize("combination", ["log_linear", "mean"])
def test_an_ensemble_leaves_out_what_any_of_its_models_does(combination):
    members = [LimitedPredictions(copying(-LOGITS), jnp.asarray([[PAD], [4]])), copying()]
    for order in (members, members[::-1]):
        compare(EnsemblePredictions(order, combination), [(0, UNK), (0, PAD), (1, 4)])


def test_an_idle_id_is_left_out_and_as_probable_as_before():
    inner = copying()
    limited = LimitedPredictions(inner, jnp.asarray([[4], [PAD]]))
    assert limited.size == inner.size == V + 1
    np.testing.assert_array_equal(limited.log_probs(), inner.log_probs())
    compare(limited, [(0, UNK), (0, 4), (1, PAD)])
    compare(LimitedPredictions(SoftmaxPredictions(LOGITS), jnp.full((2, 3), 4)), [(0, 4), (1, 4)])
