"""What the screen says of attention against gold links."""

from attention_jax.analysis.alignment_table import format_alignment

SCORES = {
    "aer": 30.0,
    "alignment_precision": 71.234,
    "alignment_recall": 69.0,
    "match": 70.0,
    "probability_mass": 60.5,
    "match_after": 12.0,
    "probability_mass_after": 9.0,
    "match_source_before": 11.0,
    "probability_mass_source_before": 8.0,
}


def test_lines_are_of_what_was_measured():
    assert format_alignment("test", SCORES) == """\
test, links against gold ones:           precision    recall       AER
  forward                                    71.23     69.00     30.00
test, attention against gold links:          match      mass
  as it is                                   70.00     60.50
  row after                                  12.00      9.00
  column before                              11.00      8.00"""


def test_symmetrised_links_and_thresholds_have_lines_of_their_own():
    more = {
        f"{name}{end}": value
        for end, value in (("_grow_diag", 1.0), ("_threshold", 2.0), ("_threshold_reverse", 3.0))
        for name in ("aer", "alignment_precision", "alignment_recall")
    }
    lines = [line.rsplit(maxsplit=3) for line in format_alignment("t", SCORES | more).splitlines()]
    assert [line[0].strip() for line in lines[1:5]] == [
        "forward", "grow-diag", "forward, by threshold", "reverse, by threshold",
    ]  # fmt: skip
    assert [line[1:] for line in lines[2:5]] == [["1.00"] * 3, ["2.00"] * 3, ["3.00"] * 3]
