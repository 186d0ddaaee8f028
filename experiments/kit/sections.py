"""Generated sections of a Markdown page, between `<!-- begin NAME -->` and `<!-- end NAME -->`."""

import re
from collections.abc import Mapping
from pathlib import Path

from attention_jax.errors import UserError
from attention_jax.runs.files import write_text


def write_sections(page: Path, sections: Mapping[str, str]) -> None:
    """Rewrites the named sections of a page; all other text is kept."""
    write_text(page, with_sections(page, sections))


def with_sections(page: Path, sections: Mapping[str, str]) -> str:
    """Returns the text of a page with the named sections replaced.

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
    """Replaces the text between the marks `begin NAME` and `end NAME`.

    Args:
      text: The page.
      name: Name of the section.
      section: Its new text.
      where: Name of the page, for messages.

    Raises:
      UserError: If there are no such marks.
    """
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    if begin not in text or end not in text:
        raise UserError(f"{where}: expected the marks {begin} and {end}, found them not")
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    # A function, because backslashes in a replacement string would be read as escapes.
    return pattern.sub(lambda _: f"{begin}\n{section}\n{end}", text)
