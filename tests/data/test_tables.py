"""Tables of columns: mistakes are one line each that names file and line."""

import pytest

from attention_jax.data.tables import read_table
from attention_jax.errors import DataError

COLUMNS = ("lemma", "form", "tags")


def test_cells_lose_the_spaces_around_them(tmp_path):
    path = tmp_path / "words.tsv"
    path.write_text("ev \t evler\tN;PL\r\nen iyi\ten iyiler\tN;PL\n")
    assert read_table(path, COLUMNS) == [("ev", "evler", "N;PL"), ("en iyi", "en iyiler", "N;PL")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("ev\tevler", r"expected 3 columns separated by tabs \(lemma, form, tags\), found 2"),
        ("ev\tevler\tN\tPL", "expected 3 columns .*, found 4"),
        ("", "expected 3 columns .*, found 1"),
        ("ev\t \tN;PL", "expected a form in every row, found an empty column"),
        ("ev\tevler\t", "expected a tags in every row, found an empty column"),
        ("ev\tevler\t" + "N" * 10_000, "expected at most 10000 characters, found 10009"),
    ],
)
def test_a_row_of_another_form_is_one_line(tmp_path, row, message):
    path = tmp_path / "words.tsv"
    path.write_text(f"ev\tevler\tN;PL\n{row}\nat\tatlar\tN;PL\n")
    with pytest.raises(DataError, match=rf"words\.tsv:2: {message}$"):
        read_table(path, COLUMNS)
