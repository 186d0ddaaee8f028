"""Files that are either complete or absent, whatever happens to the process writing them."""

import contextlib
import os
import pathlib
import re
import secrets
import time
from collections.abc import Iterator

from attention_jax.locks import locked, takes_lock
from attention_jax.paths import expanded

_TEMPORARY = re.compile(r"\.(?P<stem>.*)\.[0-9a-f]{16}\.partial(?P<suffix>\.[^.]*)?", re.DOTALL)
_ABANDONED_SECONDS = 86_400.0  # where the file system has no locks


@contextlib.contextmanager
def replacing(path: str | os.PathLike) -> Iterator[pathlib.Path]:
    """Atomic write: yields a temporary path that takes the place of `path` if the block succeeds.

    The temporary name keeps the suffix, because some writers choose a format by it. What processes
    that were killed have left of earlier ones is removed.
    """
    path = expanded(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_abandoned(path.parent, of=path.name)
    # In the same folder: a rename is atomic within a file system only.
    name = f".{path.stem}.{secrets.token_hex(8)}.partial{path.suffix}"
    temporary = path.with_name(name)
    try:
        with locked(temporary):  # by which others see that somebody is still writing
            yield temporary
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def cut_name(name: str, longest: int) -> str:
    """Returns the beginning of a name that has at most so many bytes, as file systems count."""
    return name.encode()[:longest].decode(errors="ignore")


def is_temporary(name: str) -> bool:
    """Whether a file of this name is one that `replacing` has not moved to its place."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_abandoned(folder: pathlib.Path, of: str | None = None) -> None:
    """Removes temporary files of processes that were killed, those of other writers not.

    Args:
      folder: Where; there may be none.
      of: The file that they were to become; any if None.
    """
    with contextlib.suppress(OSError):  # of a folder that is none, or that we may only read
        for name in os.listdir(folder):
            match = _TEMPORARY.fullmatch(name)
            if match and of in (None, match["stem"] + (match["suffix"] or "")):
                _remove_if_abandoned(folder / name)


def _remove_if_abandoned(path: pathlib.Path) -> None:
    with contextlib.suppress(FileNotFoundError), path.open("rb+") as file:
        # A writer that lives holds the lock, and the system drops that of one that was killed.
        is_free = takes_lock(file)
        if is_free is None:
            is_free = time.time() - os.fstat(file.fileno()).st_mtime > _ABANDONED_SECONDS
        if is_free:
            path.unlink()
