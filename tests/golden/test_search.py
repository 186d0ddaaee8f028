"""The score of a hypothesis with length and coverage, worked out by hand."""

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.search.config import SearchConfig
from attention_jax.search.coverage import coverage_penalty, word_columns
from attention_jax.search.scores import hypothesis_scores

WEIGHTS = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])  # columns sum to [.8 .5 .7]


@pytest.mark.parametrize(
    ("penalty", "alpha", "expected_penalty", "expected_score"),
    [
        # .2 log(.8 * .5 * .7); -3 / (7/6)^.2 = -3 / 1.03131031
        ("gnmt", 0.2, -0.25459314, -3.16351393),
        # no column has more than 1
        ("summary", 0.2, 0.0, -2.90892079),
    ],
)
def test_score_with_coverage(penalty, alpha, expected_penalty, expected_score):
    config = SearchConfig(
        length_normalization="gnmt", length_alpha=alpha, coverage_penalty=penalty
    )
    # A fourth source token, EOS, whose column does not count.
    coverage = jnp.asarray([[[*WEIGHTS.sum(axis=0), 0.3]]], jnp.float32)
    found = coverage_penalty(config, coverage, word_columns(jnp.array([4]), 4))
    np.testing.assert_allclose(found, [[expected_penalty]], rtol=1e-6)
    scores = hypothesis_scores(config, jnp.array([[-3.0]]), jnp.array([[2]]), found)
    np.testing.assert_allclose(scores, [[expected_score]], rtol=1e-6)


def test_summary_penalty_of_twice_the_attention():
    """Columns [1.6 1. 1.4] are .6 + 0 + .4 above one; times .2."""
    config = SearchConfig(coverage_penalty="summary")
    coverage = jnp.asarray(2 * WEIGHTS.sum(axis=0), jnp.float32)
    found = coverage_penalty(config, coverage, jnp.ones(3, bool))
    np.testing.assert_allclose(found, -0.2, rtol=1e-6)
