import pytest

from experiments.kit.alignment_variants import CLAIMS, VARIANTS
from experiments.kit.claims import Claim, claims_table
from experiments.kit.sentence_measures import MEASURES
from tests.experiments.measured import system

LABELS = {"base": "the base", "new": "the new one"}


@pytest.mark.parametrize(
    ("measure", "rate", "verdict"),
    [
        ("match", 0.8, "held"),
        ("match", 0.2, "opposite"),
        ("match", 0.5, "not shown"),
        ("missing", 0.2, "held"),
        ("missing", 0.8, "opposite"),
    ],
)
def test_claims_table_says_whether_a_claim_holds(numpy_rng, measure, rate, verdict):
    found = {
        "base": system(numpy_rng, **{measure: 0.5}),
        "new": system(numpy_rng, **{measure: rate}),
    }
    claim = Claim("Nobody 2016", "is better", measure, "new", "base")
    *_, row = claims_table(found, LABELS, [claim]).splitlines()
    assert row.endswith(f"| {verdict} |")
    assert "is better (Nobody 2016)" in row


def test_claims_about_what_was_not_measured_are_left_out(numpy_rng):
    found = {"base": system(numpy_rng, match=0.5)}
    claims = [Claim("A", "b", "match", "new", "base"), Claim("A", "b", "aer", "base", "base")]
    assert len(claims_table(found, LABELS, claims).splitlines()) == 2


def test_claims_are_about_variants_and_measures_that_there_are():
    for claim in CLAIMS:
        assert {claim.better, claim.worse} <= VARIANTS.keys()
        assert MEASURES[claim.measure].is_better
