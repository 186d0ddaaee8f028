"""A dictionary of words: what each word of one language is in another."""

from pathlib import Path

from attention_jax.data.lines import read_lines
from attention_jax.errors import DataError


def read_dictionary(path: str | Path, lowercase: bool = False) -> dict[str, str]:
    """Reads a file of `source<TAB>target` lines.

    Empty lines are skipped; of several lines for one word, the first counts.

    Args:
      path: UTF-8 text; a name ending in `.gz` is decompressed.
      lowercase: Whether words of both languages are put in lower case.

    Returns:
      The translation of each source word.

    Raises:
      DataError: Naming file and line, if it cannot be read or a line is not two such columns.
    """
    translations: dict[str, str] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.split("\t")]
        if len(columns) != 2 or not all(columns):
            raise DataError(f"{path}:{number}: expected SOURCE<TAB>TARGET, found {line!r:.80}")
        if lowercase:
            columns = [column.lower() for column in columns]
        translations.setdefault(*columns)
    return translations
