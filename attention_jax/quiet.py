"""Quiet libraries: which of their log lines reach the screen."""

import contextlib
from collections.abc import Iterator

from absl import logging


@contextlib.contextmanager
def quiet(most: int) -> Iterator[None]:
    """Keeps the messages of libraries out of the log that matter less than a level of absl.

    Args:
      most: `logging.WARNING` or `logging.ERROR`; where less is shown already, it stays so.
    """
    verbosity = logging.get_verbosity()
    logging.set_verbosity(min(verbosity, most))
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
