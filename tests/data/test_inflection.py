"""Inflection tables, and sources as users write them."""

import pytest

from attention_jax.data.inflection import InflectionConfig, checked_source, read_inflections
from attention_jax.errors import DataError


def test_a_source_is_a_lemma_with_tags(tmp_path):
    path = tmp_path / "dev"
    path.write_text("ev\tevler\tN;PL\nev\teve\tN;DAT\nev\tevlere\tN;PL\n")
    assert read_inflections(path) == [
        ("ev\tN;PL", ("evler", "evlere")),
        ("ev\tN;DAT", ("eve",)),
    ]


@pytest.mark.parametrize("tags", ["N;;PL", ";N", "N;"])
def test_a_tag_that_is_empty_is_one_line(tmp_path, tags):
    path = tmp_path / "dev"
    path.write_text(f"at\tatlar\tN;PL\nev\tevler\t{tags}\n")
    message = f"dev:2: expected tags separated by single semicolons, found '{tags}'$"
    with pytest.raises(DataError, match=message):
        read_inflections(path)


def test_a_source_without_tags_is_one_line():
    assert checked_source(" ev\tN;PL ") == "ev\tN;PL"
    with pytest.raises(DataError, match=r"source: expected 2 columns .* \(lemma, tags\), found 1"):
        checked_source("ev")


@pytest.mark.parametrize(
    ("tags", "kind", "fields"),
    [
        ("before", "tags_before", ()),
        ("after", "tags_after", ()),
        ("apart", "tags_apart", ("tags",)),
    ],
)
def test_config_says_what_symbols_are(tags, kind, fields):
    config = InflectionConfig(tags=tags)
    assert config.units == (kind, "characters") and config.must_be_read == fields
    assert InflectionConfig(tags=tags, oracle_steps="hmm").units == (kind, "character_actions")
