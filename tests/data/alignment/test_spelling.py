"""Alignment by agreement and spelling against loops over words, and against plain agreement."""

import numpy as np
import pytest

from attention_jax.data.alignment import agreement, hmm, ibm1, spelling
from attention_jax.data.alignment.aligners import align
from attention_jax.data.alignment.bitext import make_bitext
from tests.data.alignment import slow_aligners
from tests.data.alignment.test_agreement import quiet, slow_counts, turned, weights_by_width


@pytest.fixture
def spelt(numpy_rng):
    """Pairs of one to four words of one to six letters, of which many look alike."""
    letters = [*"ab"]

    def sentence():
        sizes = numpy_rng.integers(1, 7, size=numpy_rng.integers(1, 5))
        return ["".join(numpy_rng.choice(letters, size)) for size in sizes]

    return [(sentence(), sentence()) for _ in range(10)]


def of_sides(pairs):
    sides = tuple([*side] for side in zip(*pairs, strict=True))
    bitext = make_bitext(*sides)
    return bitext, spelling.estimator(bitext, sides)


def test_translation_table_equals_loops(spelt, by_words, numpy_rng):
    bitext, estimate = of_sides(spelt)
    counts = numpy_rng.random(len(bitext.source_of))
    expected = slow_aligners.spelt(
        by_words(bitext, spelt, counts), bitext.num_target_words, vars(spelling)
    )
    found = by_words(bitext, spelt, estimate(bitext, counts))
    assert found.keys() == expected.keys()
    assert found == pytest.approx(expected, rel=1e-12)


def test_probabilities_of_a_word_add_up_to_one_with_what_is_left_for_others(spelt):
    bitext, estimate = of_sides(spelt)
    counts, _ = ibm1.expected_counts(bitext, ibm1.train(bitext, 2))
    sums = np.bincount(bitext.source_of, estimate(bitext, counts))
    assert np.all((sums > 0) & (sums < 1 + 1e-12))
    assert sums[:-1].min() < 0.99 and sums[-1] == pytest.approx(1)  # NULL meets every word


def test_training_equals_loops(spelt, by_words):
    sides = spelt, turned(spelt)
    bitexts, estimates = zip(*map(of_sides, sides), strict=True)
    learnt = agreement.train_from_model_1(bitexts, (quiet, quiet), estimates)
    tables = []
    for pairs, bitext in zip(sides, bitexts, strict=True):
        states = [None, *{word for source, _ in pairs for word in source}]
        words = {word for _, target in pairs for word in target}
        table = {(f, e): 1 / len(words) for f in states for e in words}
        for _ in range(ibm1.ITERATIONS):
            counts = model_1_counts(pairs, table)
            table = slow_aligners.spelt(counts, bitext.num_target_words, vars(spelling))
        tables.append(table)
    weights = [weights_by_width(hmm.uniform_jumps(bitext)) for bitext in bitexts]
    for _ in range(agreement.ITERATIONS):
        counts = slow_counts(spelt, tables, weights)
        for way, pairs in enumerate(sides):
            _, widths, _ = slow_aligners.hmm_counts(
                pairs, tables[way], weights[way], hmm.UNIFORM_SHARE, hmm.NULL_PROBABILITY
            )
            tables[way] = slow_aligners.spelt(
                counts[way], bitexts[way].num_target_words, vars(spelling)
            )
            weights[way] = {width: widths.get(width, 0.0) + 1e-6 for width in weights[way]}
    for way, (table, jumps) in enumerate(learnt):
        found = by_words(bitexts[way], sides[way], table)
        assert found == pytest.approx(tables[way], rel=1e-7)
        assert weights_by_width(jumps) == pytest.approx(weights[way], rel=1e-7)


def model_1_counts(pairs, table):
    counts = dict.fromkeys(((f, e) for s, t in pairs for f in [*s, None] for e in t), 0.0)
    for source, target in pairs:
        for word in target:
            total = sum(table[state, word] for state in [*source, None])
            for state in [*source, None]:
                counts[state, word] += table[state, word] / total
    return counts


def test_words_that_look_alike_are_linked():
    # Each pair of words is met once: where they stand says nothing of the first, and all but
    # spelling would link them in order.
    sources, targets = [["maria", "kennt", "anton"]], [["anton", "knows", "maria"]]
    forward, reverse = align(sources, targets, "spelling")
    assert {(0, 2), (2, 0)} <= {*forward[0]} & {*reverse[0]}
    assert not {(0, 2), (2, 0)} & {*align(sources, targets, "agreement")[0][0]}


def test_words_that_begin_alike_are_translated_alike():
    # `gehen` is met often; `gehend` once, beside a word that is as rare.
    often = [(["wir", "gehen"], ["we", "walk"]), (["wir", "sehen"], ["we", "see"])] * 10
    rare = ["rot", "gehend"], ["walking", "red"]
    sources, targets = zip(*often, rare, strict=True)
    forward, reverse = align(sources, targets, "spelling")
    assert sorted(forward[-1]) == sorted(reverse[-1]) == [(0, 1), (1, 0)]


def test_pairs_without_words_on_a_side_teach_nothing():
    forward, _ = spelling.align((["a"], [], ["b"]), (["a"], ["x"], []), (quiet, quiet))
    assert forward == [[(0, 0)], [], []]
