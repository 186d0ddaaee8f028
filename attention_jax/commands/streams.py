"""The standard streams of a program, whatever the shell has made of them.

Text is UTF-8 in every locale, as the files that are read and written are. A stream that is closed
has its number taken at once, for the next file to be opened would get it, and with it all that
libraries print. The standard library is enough, so that launchers can use it too.
"""

import io
import os
import sys
from collections.abc import Callable

_replaced: list[object] = []  # one that nobody holds any more closes its number


class OutputError(Exception):
    """The standard output cannot be written; the message says why."""


def prepare(*, output_is_courtesy: bool = False) -> None:
    """Makes the standard streams of this process safe to use.

    What is said on standard error is lost where it cannot be written, which nobody could be told.

    Args:
      output_is_courtesy: Whether the same holds for the standard output, as for a launcher, whose
        trainings are not to end because nobody listens any more.

    Raises:
      OutputError: If the standard output is closed, and no courtesy.
    """
    closed = _take_closed_numbers()
    on_error = _lose if output_is_courtesy else _refuse
    _replaced.extend((sys.stdout, sys.stderr))
    sys.stdout = _text_stream(1, sys.stdout, on_error)
    sys.stderr = _text_stream(2, sys.stderr, _lose)
    if 1 in closed and not output_is_courtesy:
        raise OutputError("standard output: expected it open, found it closed")


def discard_output() -> None:
    """Lets what is still to be printed vanish, for the interpreter prints it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


class _Writer(io.FileIO):
    """A stream that asks what to do where it cannot be written."""

    def __init__(self, number: int, on_error: Callable[[OSError, int], int]):
        """Writes to a number that is open.

        Args:
          number: Of the stream.
          on_error: Given the error and the number of bytes, raises or returns how many count as
            written.
        """
        super().__init__(number, "w", closefd=False)
        self._on_error = on_error

    def write(self, data: bytes) -> int:
        try:
            return super().write(data)
        except OSError as error:
            return self._on_error(error, len(data))


def _lose(error: OSError, size: int) -> int:
    return size


def _refuse(error: OSError, size: int) -> int:
    if isinstance(error, BrokenPipeError):  # its reader has left, which is no mistake
        raise error
    raise OutputError(f"standard output: expected it to take text ({error.strerror})") from None


def _take_closed_numbers() -> list[int]:
    """Opens nothing under the numbers of closed streams; returns these."""
    closed = []
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            taken = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free, which is this
            os.set_inheritable(taken, True)
            closed.append(number)
    return closed


def _text_stream(number: int, old: object, on_error: Callable) -> io.TextIOWrapper:
    is_line_buffered = number == 2 or getattr(old, "line_buffering", False)
    is_unbuffered = getattr(old, "write_through", False)
    return io.TextIOWrapper(
        io.BufferedWriter(_Writer(number, on_error)),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=is_line_buffered,
        write_through=is_unbuffered,
    )
