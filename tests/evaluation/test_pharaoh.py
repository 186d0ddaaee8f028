"""Files of links: both marks, both bases, and a line for every mistake."""

import re

import pytest

from attention_jax.errors import DataError
from attention_jax.evaluation.pharaoh import (
    MarkedLinks,
    is_numbered,
    marked_links,
    parse_gold,
    parse_line,
    parse_lines,
    transposed,
)


def test_lines_in_any_order_with_either_mark():
    (links,) = parse_lines(["  12-3 \t0?1  2p0 0-0 0-0  "], "f")
    assert links.sure == {(12, 3), (0, 0)}
    assert links.possible == {(12, 3), (0, 0), (0, 1), (2, 0)}


@pytest.mark.parametrize("end", ["", "-0.98", "-1", "--3.5e-2", "-.5", "-1.", "-inf", "-nan", "-S"])
def test_marks_and_scores_after_a_link(end):
    assert parse_line(f"2-1{end} 0?0", "f") == marked_links([(2, 1)], [(0, 0)])
    assert parse_line(f"2-1-P 3-3{end}", "f") == marked_links([(3, 3)], [(2, 1)])
    assert parse_line(f"1-1{end}", "f", base=1) == marked_links([(0, 0)])


def test_a_score_after_the_links():
    assert parse_line("0-0 1-1 ||| -12.5", "f") == marked_links([(0, 0), (1, 1)])
    with pytest.raises(DataError, match=r"found '\|\|\|'"):
        parse_line("0-0 ||| x", "f")


def test_a_link_marked_twice_is_sure():
    assert parse_line("1p1 1-1", "f") == MarkedLinks(frozenset({(1, 1)}), frozenset({(1, 1)}))


def test_base_one_is_turned_into_base_zero():
    assert parse_line("1-2 3p1", "f", base=1) == marked_links([(0, 1)], [(2, 0)])


def test_an_empty_line_has_no_links():
    assert parse_lines(["", " "], "f") == [marked_links([]), marked_links([])]


def test_transposed_swaps_the_sides_of_both_kinds():
    links = marked_links([(2, 1)], [(0, 3)])
    assert transposed(links) == marked_links([(1, 2)], [(3, 0)])
    assert transposed(transposed(links)) == links


@pytest.mark.parametrize(
    "word",
    [
        "1", "a-1", "1-", "-1-1", "1_1", "1-1-Q", "1-1-1-1", "1-1-",
        "1?1-", "1P1", "1-1-0,5", "²-1", "1 - 1",
    ],
)
def test_what_is_no_link_is_named_with_its_line(word):
    with pytest.raises(DataError, match=rf"^f\.txt:2: .*0p1, found '{re.escape(word.split()[0])}'"):
        parse_lines(["0-0", f"0-0 {word if word != '1 - 1' else '1 - 1'}"], "f.txt")


@pytest.mark.parametrize("word", ["0-1", "1?0"])
def test_a_wrong_base_is_named(word):
    with pytest.raises(DataError, match="^f:1: expected words counted from 1, found .*base be 0?"):
        parse_lines([f"1-1 {word}"], "f", base=1)


@pytest.mark.parametrize(("base", "inside", "outside"), [(0, "1-2", "2-2"), (1, "2-3", "2-4")])
def test_links_stay_inside_of_their_sentences(base, inside, outside):
    lengths = [(9, 9), (2, 3)]
    assert parse_lines(["", inside], "f", base=base, lengths=lengths)[1] == marked_links([(1, 2)])
    words = f"^f:2: expected words of sentences of 2 and 3 words counted from {base}, found"
    with pytest.raises(DataError, match=f"{words} '{outside}'"):
        parse_lines(["", outside], "f", base=base, lengths=lengths)


@pytest.mark.parametrize("prefixes", [("", ""), ("0\t", "1\t")])
@pytest.mark.parametrize(
    ("second", "is_asked"),
    [("1-2 2-3", True), ("1-2 0-3", False), ("1-2 2-4", False), ("0-0", False)],
)
def test_base_one_is_asked_for_where_all_links_would_fit(prefixes, second, is_asked):
    lines = [prefix + line for prefix, line in zip(prefixes, ("9-1 1-2", second), strict=True)]
    with pytest.raises(DataError, match=r"^f:[12]: .* counted from 0, found") as error:
        parse_gold(lines, "f", lengths=[(9, 9), (2, 3)])
    assert str(error.value).endswith("; should the base be 1?") == is_asked
    if is_asked:
        assert parse_gold(lines, "f", base=1, lengths=[(9, 9), (2, 3)])[1].sure == {(0, 1), (1, 2)}


def test_a_wrong_number_of_lines_is_named():
    with pytest.raises(DataError, match="^f: expected 3 lines, one for each .*, found 1$"):
        parse_lines(["0-0"], "f", lengths=[(1, 1)] * 3)


def test_gold_of_all_pairs_or_of_numbered_ones():
    assert not is_numbered(["0-0 ", "\t", "# a\tb"])
    assert parse_gold(["0-0", ""], "f") == {0: marked_links([(0, 0)]), 1: marked_links([])}
    assert not is_numbered(["0-0\t1-1", "\t2-2"])
    assert parse_gold(["0-0\t1-1", ""], "f")[0] == marked_links([(0, 0), (1, 1)])
    numbered = ["# number\tlinks", "7\t1-1\t2?2", "3\t"]
    assert is_numbered(numbered)
    assert parse_gold(numbered, "f", base=1) == {
        7: marked_links([(0, 0)], [(1, 1)]),
        3: marked_links([]),
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("0-0", "f:3: expected a number, a tab, links, found '0-0'"),
        ("x\t0-0", "f:3: expected a number, a tab, links"),
        ("\t0-0", "f:3: expected a number, a tab, links"),
        ("7\t0-0", "f:3: expected every pair once, found 7"),
        ("9\t0-0", "f:3: expected pairs below 9, found 9"),
        ("8\t0-3", "f:3: expected words of sentences of 2 and 3 words counted from 0, found '0-3'"),
        ("8\t0+3", "f:3: expected links such as"),
    ],
)
def test_mistakes_in_numbered_gold_are_named(line, words):
    with pytest.raises(DataError, match=f"^{re.escape(words)}"):
        parse_gold(["# comment", "7\t0-0", line], "f", lengths=[(2, 3)] * 9)
