"""Tables in text files: columns that tabs separate, none of them empty, with a name for each."""

from collections.abc import Sequence
from pathlib import Path

from attention_jax.data.lines import MAX_LINE_CHARACTERS, read_lines
from attention_jax.errors import DataError
from attention_jax.spaced_words import strip_spaces


def read_table(path: str | Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Reads a table, without spaces around its cells.

    Args:
      path: A UTF-8 file, one row a line; read as `read_lines` reads it.
      columns: What each column holds, for messages, such as `lemma`.

    Raises:
      DataError: Naming file and line, if a row has more or fewer columns, or an empty cell, or is
        longer than any line may be; and as `read_lines`.
    """
    return [
        checked_row(line, columns, f"{path}:{number}")
        for number, line in enumerate(read_lines(path), start=1)
    ]


def checked_row(line: str, columns: Sequence[str], where: str) -> tuple[str, ...]:
    """Splits a line into its cells; `where` names it.

    Raises:
      DataError: If it is no row of these columns.
    """
    cells = tuple(strip_spaces(cell) for cell in line.split("\t"))
    if len(cells) != len(columns):
        raise DataError(
            f"{where}: expected {len(columns)} columns separated by tabs ({', '.join(columns)}), "
            f"found {len(cells)}"
        )
    for name, cell in zip(columns, cells, strict=True):
        if not cell:
            raise DataError(f"{where}: expected a {name} in every row, found an empty column")
    if len(line) > MAX_LINE_CHARACTERS:
        raise DataError(
            f"{where}: expected at most {MAX_LINE_CHARACTERS} characters, found {len(line)}"
        )
    return cells
