"""The README's numbers are those of the record."""

import pytest
from matplotlib.image import imread

from attention_jax.errors import UserError
from experiments import readme
from experiments.records import read_record
from tests.training.untrained import untrained_run, write_text


def test_readme_says_what_the_record_says(repository, monkeypatch):
    monkeypatch.chdir(repository)
    text = (repository / "README.md").read_text()
    section = readme.quickstart_section(
        read_record(readme.RECORD), readme.printed(readme.RECORD)
    )
    assert readme.replace_section(text, "quickstart", section) == text


def test_the_picture_is_of_a_run(tmp_path):
    run, _ = untrained_run(tmp_path / "run", *write_text(tmp_path))
    readme.draw_words(run, tmp_path / "words.png")
    assert imread(tmp_path / "words.png").shape[1] > 500


def test_replace_section_replaces_what_is_between_the_marks():
    text = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb"
    assert readme.replace_section(text, "x", "new") == (
        "a\n<!-- begin x -->\nnew\n<!-- end x -->\nb"
    )


def test_replace_section_without_marks_is_one_line():
    with pytest.raises(UserError, match="expected the marks"):
        readme.replace_section("nothing", "x", "new")
