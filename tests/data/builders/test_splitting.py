import collections

import pytest

from attention_jax.data.builders.splitting import (
    fraction,
    held_out_sources,
    normal_form,
    split_of,
)


def test_fraction_never_changes():
    # The first eight bytes of the well-known SHA-256 of nothing, and of "abc".
    assert fraction("") == 0xE3B0C44298FC1C14 / 2**64
    assert fraction("abc") == 0xBA7816BF8F01CFEA / 2**64


def test_split_of_holds_out_the_fractions_asked_for():
    counts = collections.Counter(
        split_of(str(number), validation=0.05, test=0.1) for number in range(20_000)
    )
    assert abs(counts["test"] / 20_000 - 0.10) < 0.01
    assert abs(counts["validation"] / 20_000 - 0.05) < 0.01


@pytest.mark.parametrize(
    ("repeated", "distinct", "count", "expected"),
    [
        ({}, 1000, 100, 100),
        ({"No.": 300}, 700, 100, 100),
        ({"OK.": 300}, 9700, 1000, 1000),
        ({"OK.": 40, "No.": 30, "Yes.": 11}, 9919, 1000, 1000),
        # Lines that are repeated no more than others are held out; two of five fill ten places.
        ({f"r{number}": 5 for number in range(20)}, 0, 10, 10),
        # A quarter of the different lines at most: 104 / 4.
        ({"a": 300, "b": 300, "c": 200, "d": 100}, 100, 100, 26),
        # Never more than asked for, unless a line alone is more.
        ({f"r{number}": 4 for number in range(16)}, 0, 6, 4),
        ({f"r{number}": 100 for number in range(9)}, 0, 90, 100),
    ],
)
def test_held_out_sources_fill_the_count_without_a_line_that_is_often_repeated(
    repeated, distinct, count, expected
):
    occurrences = {**repeated, **{f"line {number}": 1 for number in range(distinct)}}
    chosen = held_out_sources(occurrences, "validation", count)
    assert sum(occurrences[source] for source in chosen) == expected
    if distinct:
        assert not chosen & set(repeated)
    backwards = dict(reversed(occurrences.items()))
    assert held_out_sources(backwards, "validation", count) == chosen


def test_a_line_of_a_few_repetitions_is_held_out_like_others():
    occurrences = {f"line {number}": 1 + 9 * (number % 10 == 0) for number in range(4000)}
    chosen = held_out_sources(occurrences, "test", 760)
    assert {occurrences[source] for source in chosen} == {1}, "ten of 760 are more than 1 %"
    chosen = held_out_sources(occurrences, "test", 1000)
    assert sum(occurrences[source] for source in chosen) == 1000
    assert 0.08 < sum(occurrences[source] == 10 for source in chosen) / len(chosen) < 0.12


def test_normal_form_is_what_tokens_tell_apart():
    assert normal_form("A \u00a0b\u2581\u3000c", lowercase=False) == "A b c"
    assert normal_form("A  \u00c4", lowercase=True) == "a \u00e4"
