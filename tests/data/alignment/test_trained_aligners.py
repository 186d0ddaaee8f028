"""Trained aligners: a text has the same links whether it was trained on or is linked afterwards."""

import numpy as np
import pytest

from attention_jax.data.alignment import hmm, ibm1
from attention_jax.data.alignment.aligners import align
from attention_jax.data.alignment.bitext import make_bitext
from attention_jax.data.alignment.trained_aligners import MODELS, apply, learn, mean_log_probs
from attention_jax.errors import UserError
from tests.data.alignment import slow_aligners

BOTH = ["forward", "reverse"]


def sides(pairs):
    return [[*side] for side in zip(*pairs, strict=True)]


@pytest.fixture(scope="module")
def large():
    """3,500 pairs of up to six words; one in four is not translated but any other word."""
    draw = np.random.default_rng(1)
    weights = 1 / np.arange(1, 2001)
    pairs = []
    for _ in range(3500):
        words, others = draw.choice(2000, (2, draw.integers(1, 7)), p=weights / weights.sum())
        targets = np.where(draw.random(len(words)) < 0.25, others, words)
        targets = np.roll(targets, 1) if len(words) > 3 else targets
        pairs.append(([f"f{word}" for word in words], [f"e{word}" for word in targets]))
    return pairs


@pytest.mark.parametrize("method", MODELS)
def test_the_training_text_has_the_links_that_training_found(made_up, method):
    lines, pairs = [], [*made_up, ([], ["e1"])]
    expected = align(*sides(pairs), method)
    aligner = learn(*sides(pairs), method)
    assert apply(aligner, *sides(pairs), BOTH, lines.append) == expected
    assert lines == ["1 of 13 pairs have no links: a side is empty or has more than 200 words"]
    assert apply(aligner, *sides(pairs), ["reverse"]) == expected[1:]


@pytest.mark.parametrize("method", MODELS)
def test_500_of_3500_pairs_have_the_links_that_training_on_all_found(large, method):
    expected = [links[3000:] for links in align(*sides(large), method)]
    assert apply(learn(*sides(large), method), *sides(large[3000:])) == expected
    # Other text teaches other parameters, so that without these 500 pairs a few links are others.
    without = apply(learn(*sides(large[:3000]), method), *sides(large[3000:]))
    for found, wanted in zip(without, expected, strict=True):
        same = sum(one == other for one, other in zip(found, wanted, strict=True))
        assert 250 < same < 500


def test_words_that_never_met_have_what_smoothing_leaves(made_up):
    aligner = learn(*sides(made_up), "ibm1", ["forward"]).directions["forward"]
    bitext = make_bitext(*sides(made_up))
    counts, _ = ibm1.expected_counts(bitext, ibm1.train(bitext, ibm1.ITERATIONS - 1))
    totals = np.bincount(bitext.source_of, counts) + ibm1.SMOOTHING * bitext.num_target_words
    met = np.bincount(bitext.source_of)
    some_left = met < bitext.num_target_words
    assert some_left.any() and not some_left[-1]  # NULL meets every word
    expected = (ibm1.SMOOTHING / totals)[some_left]
    np.testing.assert_allclose(aligner.unseen_probs[some_left], expected, rtol=1e-9)
    assert aligner.unseen_probs[-1] == aligner.probs[aligner.sources == met.size - 1].min()


def test_probabilities_of_a_word_add_up_to_one_over_the_vocabulary(made_up):
    aligner = learn(*sides(made_up), "ibm1", ["forward"]).directions["forward"]
    words = aligner.target_words
    for source in [*aligner.source_words, "never seen"]:
        text = [[source.upper()]], [[*words]]
        bitext = make_bitext(*text)
        (table,) = aligner.parameters(bitext, text)
        rows = bitext.blocks[0].view(bitext.cells)[0]  # T 2, with NULL
        assert table[rows].sum(axis=0) == pytest.approx([1.0, 1.0])
        if source == "never seen":
            np.testing.assert_allclose(table[rows[:, 0]], 1 / len(words))


@pytest.mark.parametrize("method", MODELS)
def test_a_word_that_is_new_comes_from_one_that_is(toy, method):
    aligner = learn(*sides(toy * 5), method)
    new = ["das", "Fahrrad"], ["the", "bicycle"]
    assert apply(aligner, [new[0]], [new[1]]) == [[[(0, 0), (1, 1)]]] * 2


def test_jumps_that_training_did_not_reach_are_as_improbable_as_those_it_did_not_make():
    jumps = hmm.widened(np.array([1.0, 2.0, 3.0]), 3)
    np.testing.assert_array_equal(jumps, [1e-6, 1e-6, 1, 2, 3, 1e-6, 1e-6])
    assert hmm.widened(jumps, 2) is not None and len(hmm.widened(jumps, 2)) == 7


def test_longer_sentences_than_in_training_are_linked(toy):
    aligner = learn(*sides(toy * 5), "hmm", ["forward"])
    longer = [["das", "Haus"] * 5], [["the", "house"] * 5]
    assert apply(aligner, *longer, ["forward"]) == [[[(n, n) for n in range(10)]]]


def test_scores_are_log_probabilities_by_word(made_up, by_words):
    for method in ("ibm1", "hmm"):
        aligner = learn(*sides(made_up), method)
        forward, _ = mean_log_probs(aligner, *sides(made_up))
        bitext = make_bitext(*sides(made_up))
        direction = aligner.directions["forward"]
        table = by_words(bitext, made_up, direction.probs)
        for score, (source, target) in zip(forward, made_up, strict=True):
            states = [*source, None]
            if method == "ibm1":
                expected = sum(
                    np.log(sum(table[f, e] for f in states) / len(states)) for e in target
                )
            else:
                middle = len(direction.jumps) // 2
                widths = {n - middle: float(c) for n, c in enumerate(direction.jumps)}
                _, _, expected = slow_aligners.hmm_counts(
                    [(source, target)], table, widths, hmm.UNIFORM_SHARE, hmm.NULL_PROBABILITY
                )
            assert score == pytest.approx(expected / len(target), rel=1e-9)


def test_translations_score_higher_than_other_sentences(large):
    aligner = learn(*sides(large[:300]), "agreement")
    sources, targets = sides(large[:100])
    for right, wrong in zip(
        mean_log_probs(aligner, sources, targets),
        mean_log_probs(aligner, sources, [*targets[1:], targets[0]]),
        strict=True,
    ):
        assert np.mean(right > wrong) > 0.9
    unusable = [[], ["f1"]], [["e1"], ["e1"] * 201]
    assert mean_log_probs(aligner, *unusable)[0].tolist() == [-np.inf] * 2


def test_what_was_not_learnt_is_refused(toy):
    with pytest.raises(UserError, match="expected an aligner of the direction reverse, found one"):
        apply(learn(*sides(toy), "ibm1", ["forward"]), *sides(toy))
    with pytest.raises(UserError, match="expected one of ibm1, hmm, agreement, spelling to be"):
        learn(*sides(toy), "eflomal")
    with pytest.raises(UserError, match="1 to 200 words on both sides, found none"):
        learn([[]], [["x"]], "hmm")
    assert [*learn(*sides(toy), "agreement", ["forward"]).directions] == BOTH
