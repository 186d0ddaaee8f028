"""Inflection tables: a lemma, an inflected form of it, and the tags of that form.

The source of an example is the text `LEMMA<TAB>TAG;TAG`, its output is the form. Which symbols a
model reads such a text as is the config's choice.
"""

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.builders.blocks import Example, grouped
from attention_jax.data.tables import checked_row, read_table
from attention_jax.data.text.symbol_kinds import BETWEEN_COLUMNS, BETWEEN_TAGS
from attention_jax.data.transduction import TransductionConfig
from attention_jax.errors import DataError

COLUMNS = ("lemma", "form", "tags")


@dataclasses.dataclass(frozen=True, kw_only=True)
class InflectionConfig(TransductionConfig):
    """What every data set of inflections has.

    Attributes:
      tags: Where tags are, which are symbols of their own and never letters: `before` the letters
        of the lemma or `after` them, in one source; or `apart`, where the source has the letters
        alone, and the tags are a field that the input `tagged` reads.
    """

    task: ClassVar[str] = "inflect"
    symbols: ClassVar[tuple[str, str]] = ("characters", "characters")
    tags: str = setting("before", choices=("before", "after", "apart"))

    @property
    def source_kind(self) -> str:
        """The kind of the source's symbols."""
        return f"tags_{self.tags}"

    @property
    def must_be_read(self) -> tuple[str, ...]:  # type: ignore[override]
        """Fields without which a source is not whole."""
        return ("tags",) if self.tags == "apart" else ()


def read_inflections(path: str | Path) -> list[Example]:
    """Reads a file of `lemma<TAB>form<TAB>TAG;TAG` lines.

    Args:
      path: The file, as the CoNLL-SIGMORPHON shared tasks have them.

    Returns:
      An example for each lemma with tags; where a file has several forms of one, all of them count
      as right.

    Raises:
      DataError: Naming file and line of what is no such row.
    """
    return inflections(read_table(path, COLUMNS), str(path))


def inflections(rows: Iterable[tuple[str, ...]], where: str) -> list[Example]:
    """Makes examples of rows; `where` is the file that they are the lines of."""
    return grouped(
        (source_text(lemma, tags, f"{where}:{number}"), form)
        for number, (lemma, form, tags) in enumerate(rows, start=1)
    )


def source_text(lemma: str, tags: str, where: str) -> str:
    """Returns the text of a source.

    Raises:
      DataError: If there is no tag between two semicolons.
    """
    if not all(tags.split(BETWEEN_TAGS)):
        raise DataError(f"{where}: expected tags separated by single semicolons, found {tags!r}")
    return f"{lemma}{BETWEEN_COLUMNS}{tags}"


def checked_source(text: str, where: str = "source") -> str:
    """Returns a source as a user writes it, `LEMMA<TAB>TAG;TAG`, in the form of the data.

    Args:
      text: The source.
      where: What messages call it.

    Raises:
      DataError: If it is none.
    """
    return source_text(*checked_row(text, (COLUMNS[0], COLUMNS[2]), where), where)
