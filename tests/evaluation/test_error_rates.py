"""Error rates against cases counted by hand."""

import pytest

from attention_jax.evaluation.error_rates import edit_distance, error_rates, pronunciation_scores


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [
        ("kitten", "sitting", 3),
        ("", "abc", 3),
        ("abc", "", 3),
        ("", "", 0),
        ("abcdef", "abcdef", 0),
        ("flaw", "lawn", 2),
        ("intention", "execution", 5),
    ],
)
def test_edit_distance_golden(one, other, distance):
    assert edit_distance(one, other) == distance
    assert edit_distance(list(other), list(one)) == distance


def test_error_rates_take_the_nearest_variant():
    per, wer = error_rates(
        ["ab", "xyz", "a"],
        [["abcd", "ab"], ["xy", "wxyzw"], ["b"]],
    )
    # Nearest: ab (0 of 2), xy (1 of 2), b (1 of 1).
    assert per == pytest.approx(100 * 2 / 5)
    assert wer == pytest.approx(100 * 2 / 3)


@pytest.mark.parametrize(("variants", "length"), [(["abc", "a"], 3), (["a", "abc"], 1)])
def test_error_rates_take_the_first_of_equally_near_variants(variants, length):
    assert error_rates(["ab"], [variants]) == (pytest.approx(100 / length), 100.0)


def test_error_rates_can_exceed_hundred_percent():
    assert error_rates(["aaaa"], [["b"]]) == (400.0, 100.0)


def test_pronunciation_scores_with_and_without_stress():
    scores = pronunciation_scores(
        ["HH AH0 L OW2", "T AH0 M EY1 T OW0", "K AE1 T S"],
        [["HH AH0 L OW1", "HH EH0 L OW1"], ["T AH0 M AA1 T OW0", "T AH0 M EY1 T OW0"], ["K AE1 T"]],
    )
    assert scores == pytest.approx(
        {
            "per": 100 * 2 / 13,
            "wer": 100 * 2 / 3,
            "per_no_stress": 100 * 1 / 13,
            "wer_no_stress": 100 * 1 / 3,
        }
    )


@pytest.mark.parametrize(
    ("predictions", "references", "message"),
    [
        (["a"], [], "as many"),
        ([], [], "at least one"),
        (["a"], [[]], r"references\[0\]"),
        (["a", "b"], [["a"], "b"], r"references\[1\]"),
    ],
)
def test_error_rates_refuse_lists_that_do_not_match(predictions, references, message):
    with pytest.raises(ValueError, match=message):
        error_rates(predictions, references)
