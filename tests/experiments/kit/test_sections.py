"""Generated sections replace what stands between their marks, and nothing else."""

import pytest

from attention_jax.errors import UserError
from experiments.kit.sections import replace_section, write_sections

PAGE = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb"


def test_replace_section_replaces_what_is_between_the_marks():
    assert replace_section(PAGE, "x", "new", "page.md") == (
        "a\n<!-- begin x -->\nnew\n<!-- end x -->\nb"
    )


def test_replace_section_without_marks_is_one_line():
    with pytest.raises(UserError, match="^page.md: expected the marks .*$"):
        replace_section("nothing", "x", "new", "page.md")


def test_a_page_keeps_its_other_sections(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"{PAGE}\n{PAGE.replace('x', 'y')}")
    write_sections(page, {"y": r"new \1"})
    assert page.read_text().count("old") == 1 and r"new \1" in page.read_text()


def test_a_missing_page_is_one_line(tmp_path):
    with pytest.raises(UserError, match="expected a page to write sections of"):
        write_sections(tmp_path / "page.md", {"x": "new"})
