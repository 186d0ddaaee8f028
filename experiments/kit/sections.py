"""Generated sections of a Markdown page: what stands between `<!-- begin NAME -->` and its end."""

import re
from collections.abc import Mapping
from pathlib import Path

from attention_jax.errors import UserError
from attention_jax.runs.files import write_text


def write_sections(page: Path, sections: Mapping[str, str]) -> None:
    """Replaces the sections of a page by their names; what stands around them is kept."""
    write_text(page, with_sections(page, sections))


def with_sections(page: Path, sections: Mapping[str, str]) -> str:
    """Returns the text of a page with other sections.

    Raises:
      UserError: If the page cannot be read, or lacks the marks of a section.
    """
    try:
        text = page.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"{page}: expected a page to write sections of, found {error}") from None
    for name, section in sections.items():
        text = replace_section(text, name, section, str(page))
    return text


def replace_section(text: str, name: str, section: str, where: str) -> str:
    """Replaces what stands between the marks `begin NAME` and `end NAME`.

    Args:
      text: The page.
      name: Of the section.
      section: What is to stand there.
      where: Name of the page, for messages.

    Raises:
      UserError: If there are no such marks.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if begin not in text or end not in text:
        raise UserError(f"{where}: expected the marks {begin} and {end}, found them not")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    return pattern.sub(lambda _: f"{begin}\n{section}\n{end}", text)
