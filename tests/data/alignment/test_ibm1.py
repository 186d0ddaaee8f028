"""Model 1 against a case worked out by hand and against loops over words."""

import functools

import numpy as np
import pytest

from attention_jax.data.alignment import ibm1
from attention_jax.data.alignment.bitext import make_bitext
from tests.data.alignment import slow_aligners


def test_iterations_golden(toy, by_words):
    bitext = make_bitext(*zip(*toy, strict=True), null=False)
    table, log_likelihoods, history = np.full(len(bitext.source_of), 1 / 4), [], []
    for _ in range(3):
        counts, log_likelihood = ibm1.expected_counts(bitext, table)
        table = ibm1.translation_table(bitext, counts, smoothing=0)
        log_likelihoods.append(log_likelihood)
        history.append(by_words(bitext, toy, table, null=False))
    np.testing.assert_allclose(log_likelihoods, [-8.31776617, -5.30961137, -5.00112165])
    for pair, expected in {
        ("das", "the"): (0.5, 0.63636364, 0.74789745),
        ("Buch", "book"): (0.5, 0.63636364, 0.74789745),
        ("Haus", "house"): (0.5, 0.57142857, 0.65338645),
        ("Buch", "the"): (0.25, 0.18181818, 0.12084254),
    }.items():
        np.testing.assert_allclose([table[pair] for table in history], expected, atol=1e-8)


@pytest.mark.parametrize("null", [True, False])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_training_equals_loops(made_up, by_words, null, smoothing):
    bitext = make_bitext(*zip(*made_up, strict=True), null=null)
    expected, _ = slow_aligners.ibm1(made_up, 4, null=null, smoothing=smoothing)
    estimate = functools.partial(ibm1.translation_table, smoothing=smoothing)
    table = ibm1.train(bitext, 4, estimate=estimate)
    found = by_words(bitext, made_up, table, null)
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-12)


def test_likelihoods_equal_loops_and_rise(made_up):
    bitext = make_bitext(*zip(*made_up, strict=True))
    _, expected = slow_aligners.ibm1(made_up, 6, null=True, smoothing=0)
    table, found = np.full(len(bitext.source_of), 1 / bitext.num_target_words), []
    for _ in range(6):
        counts, log_likelihood = ibm1.expected_counts(bitext, table)
        table = ibm1.translation_table(bitext, counts, smoothing=0)
        found.append(log_likelihood)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.all(np.diff(found) > 0)


def test_every_target_word_is_expected_once(made_up):
    bitext = make_bitext(*zip(*made_up, strict=True))
    counts, _ = ibm1.expected_counts(bitext, ibm1.train(bitext, 2))
    assert counts.sum() == pytest.approx(bitext.num_tokens)


def test_links_are_of_the_likeliest_source_words(toy):
    sources, targets = zip(*toy, strict=True)
    links = ibm1.align(sources, targets)
    assert links[0] == [(0, 0), (1, 1)]
    assert links[2] == [(0, 0), (1, 1)]


def test_a_word_that_is_everywhere_comes_from_null(toy):
    pairs = [(source, [*target, "."]) for source, target in toy]
    links = ibm1.align(*zip(*pairs, strict=True))
    assert all(target < 2 for each in links for _, target in each)


def test_of_equal_words_the_first_is_linked():
    assert ibm1.align([["a", "a"], ["b"]], [["x"], ["y"]])[0] == [(0, 0)]


def test_progress_is_reported_with_the_perplexity(toy):
    lines = []
    ibm1.train(make_bitext(*zip(*toy, strict=True)), 2, report=lines.append)
    # Before the first iteration every one of the four target words is as likely as any.
    assert lines[0] == "ibm1 1/2  perplexity 4.00"
    assert lines[1].startswith("ibm1 2/2  perplexity 2.")
