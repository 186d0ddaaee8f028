"""Imported models against what the package transformers says of them, kept beside their files."""

from pathlib import Path

import pytest

from tests.foreign_models import answers_of, check_logits, check_outputs, vocabulary_of

FOLDERS = Path(__file__).parent / "foreign"
SPECIAL = {"marian": ("<pad>", "</s>", "<unk>")}


def of_family(family):
    """Its folder, its vocabulary, and what the special symbols are numbered there."""
    ids = vocabulary_of(FOLDERS / family)
    named = zip(("pad", "end", "unknown"), SPECIAL[family], strict=True)
    return FOLDERS / family, ids, {name: ids[piece] for name, piece in named}


@pytest.mark.parametrize("family", SPECIAL)
def test_logits_are_those_of_the_other_program(family):
    folder, ids, special = of_family(family)
    check_logits(folder, ids, ids, special)


@pytest.mark.parametrize("family", SPECIAL)
def test_outputs_are_those_of_the_other_program(family, tmp_path):
    folder, ids, special = of_family(family)
    run = check_outputs(folder, tmp_path / "run", ids, special)
    written = answers_of(folder)["texts"]
    assert len({*written}) > 1  # or all would be alike whatever was read
    assert run.step == 0
