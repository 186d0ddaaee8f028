"""Symmetrisation against cases worked out by hand and against published alignments."""

import numpy as np
import pytest

from attention_jax.data.config import SYMMETRIZATIONS
from attention_jax.data.lines import read_lines
from attention_jax.evaluation.aer import count_links
from attention_jax.evaluation.pharaoh import parse_lines, transposed
from attention_jax.evaluation.symmetrization import (
    METHODS,
    ORDERS,
    grow_diag,
    symmetrize,
)

FORWARD = [(0, 0), (1, 1), (2, 2), (3, 2)]
REVERSE = [(0, 0), (1, 2), (2, 2), (4, 4), (5, 0)]
BOTH = {(0, 0), (2, 2)}
GROWN = BOTH | {(1, 1), (3, 2)}


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("intersection", BOTH),
        ("union", {*FORWARD, *REVERSE}),
        ("grow-diag", GROWN),
        ("grow-diag-final", GROWN | {(4, 4), (5, 0)}),
        ("grow-diag-final-and", GROWN | {(4, 4)}),
    ],
)
def test_methods_golden(method, expected):
    assert symmetrize(FORWARD, REVERSE, method) == expected


def test_growing_strictly_needs_two_free_words():
    # (3, 2) and (1, 2) share their target with (2, 2), and (1, 1) has two free words.
    assert grow_diag(FORWARD, REVERSE, strict=True) == BOTH | {(1, 1)}


def test_growing_goes_on_from_what_it_added():
    forward = [(0, 0), (1, 1), (2, 2), (3, 3), (5, 5)]
    assert grow_diag(forward, [(0, 0)]) == {(0, 0), (1, 1), (2, 2), (3, 3)}
    assert grow_diag(forward, [(3, 3)]) == {(0, 0), (1, 1), (2, 2), (3, 3)}


def test_growing_needs_something_to_grow_from():
    assert grow_diag([(0, 0)], [(1, 1)]) == frozenset()
    assert symmetrize([(0, 0)], [(1, 1)], "grow-diag-final-and") == {(0, 0), (1, 1)}


@pytest.mark.parametrize(
    ("rivals", "first"),
    [([(0, 0), (0, 2)], (0, 2)), ([(0, 0), (2, 0)], (0, 0)), ([(2, 0), (2, 2)], (2, 0))],
)
def test_of_neighbours_that_exclude_each_other_the_first_is_taken(rivals, first):
    assert grow_diag([(1, 1), *rivals], [(1, 1)], strict=True) == {(1, 1), first}


def test_straight_neighbours_come_before_diagonal_ones():
    # (1, 0) and (0, 1) take both words of (0, 0), which comes too late.
    assert grow_diag([(1, 1), (1, 0), (0, 1), (0, 0)], [(1, 1)]) == {(1, 1), (1, 0), (0, 1)}


def test_growing_scans_by_source_then_by_target():
    # Each of the two seeds has a neighbour with the same free source, or the same free target.
    for low, high, first, second in (
        ((0, 0), (2, 4), (1, 1), (1, 3)),
        ((0, 4), (2, 0), (1, 3), (1, 1)),
        ((0, 0), (4, 2), (1, 1), (3, 1)),
        ((0, 2), (4, 0), (1, 1), (3, 1)),
    ):
        grown = grow_diag([low, high, first, second], [low, high], strict=True)
        assert grown == {low, high, first}


def test_final_takes_the_forward_links_first():
    forward, reverse = [(0, 0), (0, 1)], [(1, 0), (1, 1)]
    assert symmetrize(forward, reverse, "grow-diag-final-and") == {(0, 0), (1, 1)}
    assert symmetrize(reverse, forward, "grow-diag-final-and") == {(1, 0), (0, 1)}
    assert symmetrize(forward, reverse, "grow-diag-final") == {(0, 0), (0, 1), (1, 0)}


@pytest.mark.parametrize("method", METHODS)
def test_no_links_give_none(method):
    assert symmetrize([], [], method) == frozenset()


@pytest.mark.parametrize(
    ("seeds", "rivals", "taken"),
    [
        # Two seeds, each with a neighbour that wants the same source, or the same target.
        ([(0, 4), (2, 0)], [(1, 3), (1, 1)], ((1, 3), (1, 1), (1, 1))),
        ([(0, 2), (4, 0)], [(1, 1), (3, 1)], ((1, 1), (3, 1), (1, 1))),
        ([(0, 0), (2, 4)], [(1, 1), (1, 3)], ((1, 1), (1, 1), (1, 1))),
        # One seed with two neighbours.
        ([(1, 1)], [(0, 0), (0, 2)], ((0, 2), (0, 0), (0, 0))),
        ([(1, 1)], [(2, 0), (2, 2)], ((2, 0), (2, 0), (2, 0))),
        ([(1, 1)], [(0, 2), (2, 2)], ((0, 2), (0, 2), (0, 2))),
    ],
)
def test_each_order_takes_the_link_that_it_looks_at_first(seeds, rivals, taken):
    for order, link in zip(ORDERS, taken, strict=True):
        found = grow_diag([*seeds, *rivals], seeds, strict=True, order=order)
        assert found == {*seeds, link}, order


def test_orders_with_one_free_word():
    # (1, 2) and (2, 1) take both words of (1, 1) unless it is looked at before them.
    forward, seeds = [(2, 2), (1, 1), (1, 2), (2, 1)], [(2, 2)]
    straight = {(2, 2), (1, 2), (2, 1)}
    assert grow_diag(forward, seeds) == grow_diag(forward, seeds, order="moses") == straight
    assert grow_diag(forward, seeds, order="atools") == {(2, 2), (1, 1)}


def test_unknown_orders_are_named():
    with pytest.raises(ValueError, match="source, moses, atools, found 'symal'"):
        symmetrize([], [], "union", order="symal")


@pytest.mark.parametrize(
    ("aligner", "links", "errors"),
    [
        ("fast_align", (7922, 7917, 7832), (15.20, 15.18, 15.00)),
        ("giza", (6294, 6293, 6261), (6.39, 6.38, 6.31)),
    ],
)
def test_orders_of_tools_on_the_hansards(data_root, aligner, links, errors):
    """Links and AER that symal and atools have, found by running their loops on the same lines."""
    folder = data_root / "hansards_aer"
    if not folder.is_dir():
        pytest.skip(f"needs real data: {folder} is not a directory")
    golds = parse_lines(read_lines(folder / "enfr.gold"), "gold", base=1)
    forward, reverse = (
        parse_lines(read_lines(folder / aligner / f"test.enfr.{name}"), name)
        for name in ("talp", "reverse.talp")
    )
    for order, number, error in zip(ORDERS, links, errors, strict=True):
        joined = [
            symmetrize(one.possible, transposed(other).possible, METHODS[-1], order=order)
            for one, other in zip(forward, reverse, strict=True)
        ]
        counts = count_links(joined, golds)
        assert counts.links == number
        assert round(counts.aer, 2) == error


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("strict", [False, True])
def test_methods_lie_between_intersection_and_union(numpy_rng, strict, order):
    """And growing what has grown adds nothing."""
    for _ in range(50):
        directions = numpy_rng.random((2, 6, 5)) < 0.25
        forward, reverse = ({(int(s), int(t)) for s, t in np.argwhere(each)} for each in directions)
        for method in METHODS:
            links = symmetrize(forward, reverse, method, strict=strict, order=order)
            assert forward & reverse <= links <= forward | reverse, method
        grown = grow_diag(forward, reverse, strict=strict, order=order)
        assert grow_diag(grown, grown, strict=strict, order=order) == grown
        assert grow_diag(grown, forward | reverse, strict=strict, order=order) == grown


def test_unknown_methods_are_named():
    with pytest.raises(ValueError, match="grow-diag-final-and, found 'grow'"):
        symmetrize([], [], "grow")


@pytest.mark.parametrize("aligner", ["fast_align", "giza"])
@pytest.mark.parametrize(
    ("published", "method"),
    [
        ("intersection", "intersection"),
        ("union", "union"),
        ("grow-diagonal", "grow-diag"),
        ("grow-diagonal-final", "grow-diag-final-and"),
    ],
)
def test_published_alignments_link_by_link(data_root, aligner, published, method):
    folder = data_root / "hansards_aer" / aligner
    if not folder.is_dir():
        pytest.skip(f"needs real data: {folder} is not a directory")

    def links_of(name):
        return parse_lines(read_lines(folder / f"test.enfr.{name}"), name)

    ours = [
        symmetrize(forward.possible, transposed(reverse).possible, method, strict=True)
        for forward, reverse in zip(links_of("talp"), links_of("reverse.talp"), strict=True)
    ]
    assert ours == [links.possible for links in links_of(f"{published}.talp")]


def test_a_config_may_name_every_method():
    assert SYMMETRIZATIONS == METHODS
