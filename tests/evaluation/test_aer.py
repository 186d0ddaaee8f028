"""AER against cases worked out by hand and against published scores."""

import numpy as np
import pytest

from attention_jax.data.lines import read_lines
from attention_jax.evaluation.aer import LinkCounts, count_links, error_rate, saer
from attention_jax.evaluation.pharaoh import marked_links, parse_lines, transposed

GOLD = marked_links([(0, 0), (1, 1)], [(2, 1), (2, 2)])

# AER, precision, recall as published with the alignments, see their README.
PUBLISHED = {
    "fast_align/test.enfr.talp": (16.4, 80.0, 90.1),
    "fast_align/test.enfr.reverse.talp": (15.9, 81.3, 88.7),
    "fast_align/test.enfr.union.talp": (19.5, 74.4, 94.4),
    "fast_align/test.enfr.grow-diagonal.talp": (10.5, 90.8, 87.8),
    "fast_align/test.enfr.grow-diagonal-final.talp": (12.1, 87.7, 88.3),
    "giza/test.enfr.talp": (8.0, 91.4, 92.9),
    "giza/test.enfr.reverse.talp": (9.8, 91.6, 88.3),
    "giza/test.enfr.intersection.talp": (7.6, 98.4, 85.6),
    "giza/test.enfr.union.talp": (9.9, 87.1, 95.5),
    "giza/test.enfr.grow-diagonal.talp": (5.9, 97.5, 89.7),
    "giza/test.enfr.grow-diagonal-final.talp": (6.2, 95.5, 91.6),
}


def test_scores_golden():
    counts = count_links([[(0, 0), (2, 2), (1, 2)]], [GOLD])
    assert counts == LinkCounts(links=3, sure=2, sure_hits=1, possible_hits=2)
    assert counts.precision == pytest.approx(200 / 3)
    assert counts.recall == pytest.approx(50)
    assert counts.aer == pytest.approx(40)


def test_counts_are_pooled_before_they_are_divided():
    golds = [
        marked_links([(0, 0)]),
        marked_links([(0, 0), (1, 1), (2, 2)], [(0, 1)]),
    ]
    counts = count_links([[(0, 0)], [(0, 1), (1, 0), (2, 0)]], golds)
    assert counts.aer == pytest.approx(62.5)


def test_swapping_the_sides_of_both_changes_nothing():
    hypothesis = [(0, 0), (2, 2), (1, 2)]
    swapped = [(target, source) for source, target in hypothesis]
    counts = count_links([hypothesis], [GOLD])
    assert counts == count_links([swapped], [transposed(GOLD)])
    assert counts.aer != count_links([swapped], [GOLD]).aer
    weights = np.arange(9.0).reshape(3, 3)
    assert saer([weights], [GOLD]) == saer([weights.T], [transposed(GOLD)])


def test_a_link_counts_once():
    assert count_links([[(0, 0), (0, 0)]], [GOLD]).links == 1


def test_nothing_to_count():
    nothing = count_links([[]], [marked_links([])])
    assert (nothing.precision, nothing.recall, nothing.aer) == (0, 0, 0)
    silent = count_links([[]], [GOLD])
    assert (silent.precision, silent.recall, silent.aer) == (0, 0, 100)
    unasked = count_links([[(0, 0)]], [marked_links([])])
    assert (unasked.precision, unasked.recall, unasked.aer) == (0, 0, 100)


def test_error_rates_of_rows_are_those_of_their_counts():
    rows = np.array([[3.0, 2.0, 2.0, 3.0], [5.0, 4.0, 1.0, 2.0], [0.0, 0.0, 0.0, 0.0]])
    assert error_rate(rows).tolist() == [LinkCounts(*row).aer for row in rows]
    assert error_rate(rows)[-1] == error_rate(np.zeros(4)) == 0


def test_possible_links_cost_nothing_and_gain_no_recall():
    sure = count_links([[(0, 0), (1, 1)]], [GOLD])
    more = count_links([[(0, 0), (1, 1), (2, 1), (2, 2)]], [GOLD])
    assert sure.aer == more.aer == 0
    assert count_links([[(2, 1), (2, 2)]], [GOLD]).recall == 0


@pytest.mark.parametrize("score", [count_links, saer])
def test_hypotheses_and_golds_must_match(score):
    with pytest.raises(ValueError, match="found 1 and 0"):
        score([], [GOLD])
    with pytest.raises(ValueError, match="at least one"):
        score([], [])


def test_saer_of_zeros_and_ones_is_aer():
    links = [(0, 0), (2, 2), (1, 2)]
    weights = np.zeros((3, 3))
    for source, target in links:
        weights[target, source] = 1
    assert saer([weights], [GOLD]) == pytest.approx(40)


def test_saer_golden():
    # Rows are target words: |M_A| = 3, |M_S| = 2, sure mass .6 + .2, possible .6 + .2 + .3 + .4.
    weights = np.array([[0.6, 0.3, 0.1], [0.5, 0.2, 0.3], [0.1, 0.5, 0.4]])
    assert saer([weights], [GOLD]) == pytest.approx(100 * (1 - (0.8 + 1.5) / 5))
    # Pooled with a pair of which all is right: 1 + 1 hits more, of 1 + 1.
    pooled = saer([weights, np.ones((1, 1))], [GOLD, marked_links([(0, 0)])])
    assert pooled == pytest.approx(100 * (1 - (0.8 + 1.5 + 2) / 7))


def test_saer_needs_a_weight_for_every_link():
    with pytest.raises(ValueError, match=r"matrices: .* link \(2, 1\), found shape \(3, 2\)"):
        saer([np.ones((3, 2))], [GOLD])


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_scores_of_the_hansards(data_root, name):
    folder = data_root / "hansards_aer"
    if not folder.is_dir():
        pytest.skip(f"needs real data: {folder} is not a directory")
    texts = [line.split(" ||| ") for line in read_lines(folder / "enfr.src-tgt")]
    lengths = [(len(source.split()), len(target.split())) for source, target in texts]
    golds = parse_lines(read_lines(folder / "enfr.gold"), "gold", base=1, lengths=lengths)
    reverse = "reverse" in name
    sides = [(target, source) for source, target in lengths] if reverse else lengths
    links = parse_lines(read_lines(folder / name), name, lengths=sides)
    counts = count_links(
        [(transposed(each) if reverse else each).possible for each in links], golds
    )
    scores = tuple(round(score, 1) for score in (counts.aer, counts.precision, counts.recall))
    assert scores == PUBLISHED[name]


def test_published_score_of_the_intersection_of_fast_align(data_root):
    # The published precision, 92.3, is that of 4901 links; the published file has 4899.
    folder = data_root / "hansards_aer"
    if not folder.is_dir():
        pytest.skip(f"needs real data: {folder} is not a directory")
    golds = parse_lines(read_lines(folder / "enfr.gold"), "gold", base=1)
    name = "fast_align/test.enfr.intersection.talp"
    counts = count_links(
        [links.possible for links in parse_lines(read_lines(folder / name), name)], golds
    )
    assert (round(counts.aer, 1), round(counts.recall, 1)) == (11.2, 84.5)
    assert counts.links == 4899
