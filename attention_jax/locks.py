"""Locks of files, which the system drops when their holder ends, however it ends."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def locked(path: str | os.PathLike, *, wait: bool = True, remove: bool = False) -> Iterator[None]:
    """File lock: lets one process at a time into the block; makes the file if there is none.

    A file system without locks lets everybody in.

    Args:
      path: The file.
      wait: Whether to wait for another holder.
      remove: Whether the file is removed after the block.

    Raises:
      BlockingIOError: If another process holds the lock and is not waited for.
      OSError: If the file cannot be opened.
    """
    path = Path(path)
    with _held(path, wait):
        try:
            yield
        finally:
            if remove:
                path.unlink(missing_ok=True)


def takes_lock(file: IO, *, wait: bool = False) -> bool | None:
    """Takes the lock of an open file, if no other process has it; None where there are no locks."""
    try:
        # Not `lockf`, whose locks end when any descriptor of the file is closed.
        fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _held(path: Path, wait: bool) -> IO:
    """Returns the file, open and locked; closing it lets go of the lock."""
    while True:
        # To append: made if it is not there, and never emptied.
        file = path.open("ab")
        try:
            if takes_lock(file, wait=wait) is False:
                raise BlockingIOError
            # The last holder may have removed what we had opened, so that others lock another one.
            if _is_at(path, file):
                return file
        # Ctrl-C while waiting must not leave the file open.
        except BaseException:
            file.close()
            raise
        file.close()


def _is_at(path: Path, file: IO) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False
