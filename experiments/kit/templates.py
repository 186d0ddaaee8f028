"""Page templates: the prose of generated pages as Markdown, with places for numbers and tables.

A template is a file of `experiments/templates` that looks as its page does, and is named like it.
`$name` stands for a number, a table or a whole section that the experiment makes of its records. A
paragraph that is nothing but such a name is left out where its value is empty.
"""

import string
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "templates"


def fill(name: str, **values: object) -> str:
    """Fills the places of a template.

    Args:
      name: The file without its suffix.
      values: What stands in each place, by its name; formatted already if it is a number.

    Returns:
      The text, without a line break at its end.

    Raises:
      ValueError: If the values are not those that the template has places for.
    """
    text = (FOLDER / f"{name}.md").read_text(encoding="utf-8").strip("\n")
    places = set(string.Template(text).get_identifiers())
    if places != values.keys():
        missing, unknown = sorted(places - values.keys()), sorted(values.keys() - places)
        raise ValueError(f"{name}.md: expected no other values than its places, found none for "
                         f"{missing}, and no place for {unknown}")  # fmt: skip
    # Paragraph by paragraph, before anything is filled in: values have empty lines of their own.
    filled = (string.Template(part).substitute(values) for part in text.split("\n\n"))
    return "\n\n".join(part for part in filled if part)


def titled(heading: str, text: str) -> str:
    """Returns a section under its heading; nothing where it would be empty."""
    return f"## {heading}\n\n{text}" if text else ""


def section(lines: Iterable[str]) -> str:
    """Joins the lines of a section; the empty line after it is the template's."""
    return "\n".join(lines).rstrip("\n")
