"""Alignment by agreement against sums over all paths of both directions, pair by pair."""

from collections import defaultdict

import numpy as np
import pytest

from attention_jax.data.alignment import agreement, hmm, ibm1
from attention_jax.data.alignment.bitext import make_bitext
from tests.data.alignment import slow_aligners


def quiet(line):
    """Takes a line of progress."""


def both_ways(pairs):
    sources, targets = zip(*pairs, strict=True)
    return make_bitext(sources, targets), make_bitext(targets, sources)


def turned(pairs):
    return [(target, source) for source, target in pairs]


def weights_by_width(jumps):
    middle = len(jumps) // 2
    return {index - middle: float(weight) for index, weight in enumerate(jumps)}


def slow_posteriors(source, target, table, weight_of):
    """Returns p(a_j = i) of one pair, `T S`, by summing over all paths."""
    start, transitions = slow_aligners.jump_probabilities(
        len(source), weight_of, hmm.UNIFORM_SHARE
    )
    emissions = [[table[word, each] for word in source] for each in target]
    null_emissions = [table[None, each] for each in target]
    found = slow_aligners.summed_over_paths(
        emissions, null_emissions, start, transitions, hmm.NULL_PROBABILITY
    )
    return np.array(found[1])[:, :-1]


def slow_counts(pairs, tables, weights):
    """Returns the counts that both directions agree on, {(f, e): count} of each direction."""
    counts = defaultdict(float), defaultdict(float)
    for source, target in pairs:
        forward = slow_posteriors(source, target, tables[0], weights[0])
        reverse = slow_posteriors(target, source, tables[1], weights[1])
        for i, one in enumerate(source):
            for j, other in enumerate(target):
                both = forward[j, i] * reverse[i, j]
                counts[0][one, other] += both
                counts[1][other, one] += both
                forward[j, i] = reverse[i, j] = both
        for words, left, found in (
            (target, 1 - forward.sum(axis=1), counts[0]),
            (source, 1 - reverse.sum(axis=1), counts[1]),
        ):
            for word, share in zip(words, left, strict=True):
                found[None, word] += share
    return counts


def test_agreement_golden():
    # Two words each: the cells are in the order of rows, with NULL last.
    bitexts = both_ways([(["a", "b"], ["x", "y"])])
    forward = np.array([0.8, 0.1, 0.1, 0.5, 0.3, 0.2])  # x: a b NULL; y: a b NULL
    reverse = np.array([0.5, 0.4, 0.1, 0.0, 0.9, 0.1])  # a: x y NULL; b: x y NULL
    agreement.agree(bitexts, forward, reverse)
    np.testing.assert_allclose(forward, [0.4, 0.0, 0.6, 0.2, 0.27, 0.53])
    np.testing.assert_allclose(reverse, [0.4, 0.2, 0.4, 0.0, 0.27, 0.73])


def test_agreed_counts_equal_sums_over_all_paths(made_up, by_words, numpy_rng):
    bitexts, sides = both_ways(made_up), (made_up, turned(made_up))
    tables = [numpy_rng.random(len(bitext.source_of)) for bitext in bitexts]
    jumps = [numpy_rng.random(2 * 4 + 1) for _ in bitexts]
    expected = slow_counts(
        made_up,
        [by_words(*each) for each in zip(bitexts, sides, tables, strict=True)],
        [weights_by_width(each) for each in jumps],
    )
    cells = [hmm.posteriors(*each)[0] for each in zip(bitexts, tables, jumps, strict=True)]
    agreement.agree(bitexts, *cells)
    for bitext, pairs, posteriors, counts in zip(bitexts, sides, cells, expected, strict=True):
        found = np.bincount(bitext.cells, posteriors, len(bitext.source_of))
        assert by_words(bitext, pairs, found) == pytest.approx(dict(counts), rel=1e-9, abs=1e-12)


def test_training_equals_loops(made_up, by_words):
    bitexts, sides = both_ways(made_up), (made_up, turned(made_up))
    tables = [ibm1.train(bitext, 2) for bitext in bitexts]
    learnt = agreement.train(bitexts, tables, 2, reports=(quiet, quiet))
    slow_tables = [by_words(*each) for each in zip(bitexts, sides, tables, strict=True)]
    weights = [weights_by_width(hmm.uniform_jumps(bitext)) for bitext in bitexts]
    for _ in range(2):
        counts = slow_counts(made_up, slow_tables, weights)
        for way, pairs in enumerate(sides):
            _, widths, _ = slow_aligners.hmm_counts(
                pairs, slow_tables[way], weights[way], hmm.UNIFORM_SHARE, hmm.NULL_PROBABILITY
            )
            slow_tables[way] = slow_aligners.normalized(
                counts[way], ibm1.SMOOTHING, bitexts[way].num_target_words
            )
            weights[way] = {width: widths.get(width, 0.0) + 1e-6 for width in weights[way]}
    for way, (table, jumps) in enumerate(learnt):
        found = by_words(bitexts[way], sides[way], table)
        assert found == pytest.approx(slow_tables[way], rel=1e-8)
        assert weights_by_width(jumps) == pytest.approx(weights[way], rel=1e-8)


def test_words_are_linked_by_the_posterior_of_their_own_direction(made_up, numpy_rng):
    bitext, _ = both_ways(made_up)
    table, jumps = numpy_rng.random(len(bitext.source_of)), numpy_rng.random(9)
    cells, _, _ = hmm.posteriors(bitext, table, jumps)
    found = agreement.likeliest_states(bitext, table, jumps)
    for block, states in zip(bitext.blocks, found, strict=True):
        rows = block.view(cells)
        assert states.shape == rows.shape[:2]
        assert np.all(np.take_along_axis(rows, states[..., None], axis=-1)[..., 0] == rows.max(-1))


def test_directions_agree_more_than_those_of_hmms(made_up):
    sources, targets = zip(*made_up, strict=True)

    def shared(forward, reverse):
        return sum(
            len({*one} & {(s, t) for t, s in other})
            for one, other in zip(forward, reverse, strict=True)
        )

    found = agreement.align(sources, targets, (quiet, quiet))
    assert shared(*found) > shared(hmm.align(sources, targets), hmm.align(targets, sources))


def test_progress_is_reported_by_direction(toy):
    lines = [], []
    agreement.align(*zip(*toy, strict=True), tuple(each.append for each in lines))
    for each in lines:
        assert len(each) == ibm1.ITERATIONS + agreement.ITERATIONS
        assert each[-1].startswith("agreement 5/5  perplexity ")
