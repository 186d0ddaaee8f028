"""Templates: places are filled, empty sections leave no gap, and no place is forgotten."""

import re

import pytest

from experiments.kit import templates


@pytest.fixture
def template(tmp_path, monkeypatch):
    monkeypatch.setattr(templates, "FOLDER", tmp_path)

    def write(text):
        (tmp_path / "page.md").write_text(text, encoding="utf-8")

    return write


def test_places_are_filled_and_values_are_left_as_they_are(template):
    template("# Page\n\n$number runs, p < $p\n\n$table\n")
    text = templates.fill("page", number=3, p="0.05", table="| $a |\n\n| ${b} |")
    assert text == "# Page\n\n3 runs, p < 0.05\n\n| $a |\n\n| ${b} |"


def test_an_empty_section_leaves_no_gap(template):
    template("before\n\n$section\n\nafter\n")
    assert templates.fill("page", section="") == "before\n\nafter"
    assert templates.fill("page", section="a\n\nb") == "before\n\na\n\nb\n\nafter"


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ({}, "found none for ['x'], and no place for []"),
        ({"x": 1, "y": 2}, "found none for [], and no place for ['y']"),
    ],
)
def test_other_values_than_places_are_a_mistake(template, values, found):
    template("$x\n")
    with pytest.raises(ValueError, match=re.escape(found)):
        templates.fill("page", **values)


def test_lines_of_a_section_end_without_empty_ones():
    assert templates.section(["## A", "", "b", "", ""]) == "## A\n\nb"
    assert templates.section([]) == ""


def test_every_template_is_used(repository):
    code = "".join(
        path.read_text(encoding="utf-8") for path in (repository / "experiments").rglob("*.py")
    )
    names = [path.stem for path in templates.FOLDER.glob("*.md")]
    # By its own name, or by the `NAME` of the experiment whose page it is.
    unused = [name for name in names if not re.search(rf"[\"']{name}[\"']", code)]
    assert names and not unused
