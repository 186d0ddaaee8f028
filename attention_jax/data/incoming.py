"""Text as it comes: the characters of lines that are still being written, and their tokens.

What `data.lines` reads at once is here read as soon as it is there, so that a mistake in it is met
when it is reached.
"""

import codecs
import os
import sys
from collections.abc import Callable, Iterator

from attention_jax.data.lines import MAX_LINE_CHARACTERS
from attention_jax.data.text.symbol_kinds import BY_CHARACTER
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.errors import DataError
from attention_jax.spaced_words import SPACES

_MOST_BYTES = 4096  # that are taken at a time, of as many as there are


def incoming_lines() -> Iterator[Iterator[str]]:
    """Yields each line of the standard input as the characters that it consists of.

    A line ends at a newline or with the input; what is not taken of it is left out.

    Raises:
      DataError: If the standard input cannot be read, has no line, or is no text.
    """
    characters, is_empty = _characters(), True
    for first in characters:
        is_empty = False
        line = _line(first, characters)
        yield line
        for _ in line:  # what nobody has waited for
            pass
    if is_empty:
        raise DataError("standard input: expected one sentence a line, found an empty file")


def _line(first: str, rest: Iterator[str]) -> Iterator[str]:
    character = first
    while character != "\n":
        yield character
        character = next(rest, "\n")


def _characters() -> Iterator[str]:
    """Yields the characters of the standard input, whose first bytes may say that it is UTF-8."""
    if sys.stdin is None:
        raise DataError("standard input: expected text, found it closed")
    decoder, number = codecs.getincrementaldecoder("utf-8-sig")(), 1
    while True:
        try:
            content = os.read(sys.stdin.fileno(), _MOST_BYTES)
        except OSError as error:
            raise DataError(f"standard input: expected it readable ({error.strerror})") from None
        try:
            text = decoder.decode(content, final=not content)
        except UnicodeDecodeError as error:
            known = error.object[: error.start].decode("utf-8", "replace")
            yield from known
            raise DataError(
                f"standard input:{number + known.count(chr(10))}: expected UTF-8 text, found byte "
                f"0x{error.object[error.start]:02x}"
            ) from None
        for character in text:
            if character == "\0":
                raise DataError(
                    f"standard input:{number}: expected UTF-8 text, found a NUL character (UTF-16?)"
                )
            number += character == "\n"
            yield character
        if not content:
            return


def incoming_tokens(
    characters: Iterator[str], vocabulary: Vocabulary, prepare: Callable[[str], str], place: str
) -> Iterator[int]:
    """Yields the ids of a line as soon as they are known, without EOS; nothing of a blank one.

    A character is known when it is there, where they, or their parts, are the symbols of the
    vocabulary, and a word when a space or the end of the line follows.

    Args:
      characters: Of the line.
      vocabulary: Turns it into ids.
      prepare: Brings a text into the form of the data set's.
      place: Which line it is, for messages.

    Raises:
      DataError: If the line is too long, or if ids change with what follows them.
    """
    known: list[int] = []
    is_by_character = vocabulary.kind in BY_CHARACTER

    def more(text: str) -> list[int]:
        text = prepare(text)
        ids = vocabulary.encode(text) if text.strip() else []
        if ids[: len(known)] != known:
            raise DataError(
                f"{place}: expected text whose words do not change with what follows them, found "
                f"{text!r}"
            )
        new = ids[len(known) :]
        known.extend(new)
        return new

    text = ""
    for character in characters:
        is_space = character in SPACES
        if is_space and not is_by_character:
            yield from more(text)
        text += character
        if len(text) > MAX_LINE_CHARACTERS:
            raise DataError(f"{place}: expected at most {MAX_LINE_CHARACTERS} characters")
        if is_by_character and not is_space and character != "\r":
            yield from more(text)
    yield from more(text)
