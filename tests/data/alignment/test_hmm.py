"""The HMM aligner against loops over words and paths, and against Model 1 on real text."""

import numpy as np
import pytest

from attention_jax.data.alignment import hmm, ibm1
from attention_jax.data.alignment.bitext import make_bitext
from tests.data.alignment import slow_aligners


def weights_by_width(jumps):
    middle = len(jumps) // 2
    return {index - middle: float(weight) for index, weight in enumerate(jumps)}


def test_jump_probabilities_golden():
    jumps = np.array([0.0, 0.0, 0.2, 0.3, 0.5, 0.0, 0.0])
    start, transitions = hmm.jump_probabilities(3, jumps, uniform_share=0.0)
    np.testing.assert_allclose(transitions, [[0.375, 0.625, 0], [0.2, 0.3, 0.5], [0, 0.4, 0.6]])
    np.testing.assert_allclose(start, [1, 0, 0])
    start, transitions = hmm.jump_probabilities(3, jumps, uniform_share=0.3)
    np.testing.assert_allclose(transitions[0], [0.7 * 0.375 + 0.1, 0.7 * 0.625 + 0.1, 0.1])
    np.testing.assert_allclose(start, [0.8, 0.1, 0.1])


def test_jump_probabilities_equal_loops(numpy_rng):
    jumps = numpy_rng.random(2 * 6 + 1)
    for num_words in (1, 4, 6):
        expected = slow_aligners.jump_probabilities(num_words, weights_by_width(jumps), 0.2)
        found = hmm.jump_probabilities(num_words, jumps, 0.2)
        np.testing.assert_allclose(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1])


def test_expected_counts_equal_sums_over_all_paths(made_up, by_words, numpy_rng):
    bitext = make_bitext(*zip(*made_up, strict=True))
    table = numpy_rng.random(len(bitext.source_of))
    jumps = numpy_rng.random(2 * 4 + 1)
    links, widths, log_likelihood = slow_aligners.hmm_counts(
        made_up,
        by_words(bitext, made_up, table),
        weights_by_width(jumps),
        hmm.UNIFORM_SHARE,
        hmm.NULL_PROBABILITY,
    )
    found = hmm.expected_counts(bitext, table, jumps)
    assert by_words(bitext, made_up, found[0]) == pytest.approx(links, rel=1e-10)
    widths = {width: widths.get(width, 0.0) for width in range(-4, 5)}
    assert weights_by_width(found[1]) == pytest.approx(widths, rel=1e-10)
    assert found[2] == pytest.approx(log_likelihood)


def test_training_equals_loops(made_up, by_words):
    bitext = make_bitext(*zip(*made_up, strict=True))
    longest = max(len(source) for source, _ in made_up)
    start = ibm1.train(bitext, 2)
    table, jumps = hmm.train(bitext, start, 3)
    slow_table = by_words(bitext, made_up, start)
    weights = dict.fromkeys(range(-longest, longest + 1), 1.0)
    for _ in range(3):
        links, widths, _ = slow_aligners.hmm_counts(
            made_up, slow_table, weights, hmm.UNIFORM_SHARE, hmm.NULL_PROBABILITY
        )
        slow_table = slow_aligners.normalized(links, ibm1.SMOOTHING, bitext.num_target_words)
        weights = {width: widths.get(width, 0.0) + 1e-6 for width in weights}
    assert by_words(bitext, made_up, table) == pytest.approx(slow_table, rel=1e-9)
    assert weights_by_width(jumps) == pytest.approx(weights, rel=1e-9)


def test_position_decides_between_equal_words():
    # Only their places tell the two a's and the two x's apart.
    sources = [["a", "b", "a"], ["b", "c"], ["c", "a"], ["a", "b"]]
    targets = [["x", "y", "x"], ["y", "z"], ["z", "x"], ["x", "y"]]
    assert hmm.align(sources, targets)[0] == [(0, 0), (1, 1), (2, 2)]
    assert ibm1.align(sources, targets)[0] == [(0, 0), (1, 1), (0, 2)]


def test_progress_is_reported(toy):
    lines = []
    hmm.align(*zip(*toy, strict=True), lines.append)
    assert len(lines) == ibm1.ITERATIONS + hmm.ITERATIONS
    assert lines[-1].startswith("hmm 5/5  perplexity 1.")
