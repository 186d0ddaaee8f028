"""Running text: what data sets share whose texts are to be continued, line after line."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.builders.blocks import Example
from attention_jax.data.config import DataConfig
from attention_jax.data.lines import MAX_LINE_CHARACTERS, read_lines
from attention_jax.errors import DataError
from attention_jax.spaced_words import spaced_words

END_OF_LINE = "<eos>"  # between the lines of a text, as Mikolov's programs have it; the last is EOS


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunningTextConfig(DataConfig):
    """What every data set of running text has; there is nothing to read beside a text.

    Attributes:
      lines_per_text: How many lines that follow one another are one text, with a symbol between
        them; so many more words are known where a line begins. Perplexity counts the ends of
        lines as words, be they within a text or its last.
    """

    task: ClassVar[str] = "continue"
    units: ClassVar[tuple[str, str]] = ("symbols", "symbols")
    lines_per_text: int = setting(1, at_least=1)

    def texts(self, lines: Sequence[str]) -> list[str]:
        """Joins lines to texts; the last text may have fewer."""
        between = f" {END_OF_LINE} "
        return [
            between.join(lines[first : first + self.lines_per_text])
            for first in range(0, len(lines), self.lines_per_text)
        ]


def read_text(path: str | Path) -> list[str]:
    """Reads the lines of a text, words separated by single spaces; empty lines are left out.

    Raises:
      DataError: As `read_lines`, and if a line is too long, or all are empty.
    """
    lines = []
    for number, line in enumerate(read_lines(path), start=1):
        if len(line) > MAX_LINE_CHARACTERS:
            raise DataError(
                f"{path}:{number}: expected at most {MAX_LINE_CHARACTERS} characters, found "
                f"{len(line)}"
            )
        if words := spaced_words(line):
            lines.append(" ".join(words))
    if not lines:
        raise DataError(f"{path}: expected lines with words, found none")
    return lines


def without_sources(splits: Mapping[str, Sequence[str]]) -> dict[str, list[Example]]:
    """Returns texts as examples, each the only output of an empty source."""
    return {name: [Example("", (text,)) for text in texts] for name, texts in splits.items()}
