"""Imported models against what the package transformers says of them, kept beside their files."""

from pathlib import Path

import pytest

from tests.foreign_models import answers_of, check_logits, check_outputs, vocabulary_of

FOLDERS = Path(__file__).parent / "foreign"
FAMILIES = ("marian", "t5", "bart")


@pytest.mark.parametrize("family", FAMILIES)
def test_logits_are_those_of_the_other_program(family):
    ids, special = vocabulary_of(FOLDERS / family)
    check_logits(FOLDERS / family, ids, ids, special)


@pytest.mark.parametrize("family", FAMILIES)
def test_outputs_are_those_of_the_other_program(family, tmp_path):
    ids, special = vocabulary_of(FOLDERS / family)
    run = check_outputs(FOLDERS / family, tmp_path / "run", ids, special)
    written = answers_of(FOLDERS / family)["texts"]
    assert len({*written}) > 1  # or all would be alike whatever was read
    assert run.step == 0
