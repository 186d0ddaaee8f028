"""Paths: home directories, caches, and plain names for libraries that read names as patterns.

To the library below the checkpoints a directory `job[5]` is a pattern, and the backslash of another
one separates names; so it is with TFDS and with addresses of databases. They are given a symbolic
link to the directory instead.
"""

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attention_jax.errors import UserError

# Not below /gs, /s3 and the like, which they take for addresses of object stores.
_PLAIN = re.compile(r"(?!/(gs|s3|az|hf)(/|\Z))[A-Za-z0-9/._=+-]*")
_USUAL = ("/tmp", "/var/tmp", "/dev/shm")


def expanded(path: str | os.PathLike) -> Path:
    """Returns a path with the home directory of `~` or `~user`.

    Raises:
      UserError: If there is no such user, the user has no home directory, or the path is an address
        as that of a bucket, which would otherwise be a directory `gs:` on this machine's disk.
    """
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", os.fspath(path)):
        raise UserError(
            f"{path}: expected a path, found an address; mount a bucket and name the directory "
            "where it is mounted (docs/launching.md)"
        )
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UserError(f"{path}: expected the home directory of a user, found none") from None


def user_cache() -> Path:
    """Returns where the user's caches of this package are, as the XDG specification says.

    A variable that is empty, or names no absolute path, counts as unset.
    """
    named = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(named) if os.path.isabs(named) else expanded("~/.cache")) / "attention_jax"


@contextlib.contextmanager
def plainly_named(directory: str | os.PathLike) -> Iterator[Path]:
    """Yields a plain name of a directory, of letters, digits and `/._=+-`: its own, or a link's.

    The link is made in the directory of temporary files, for this process alone, and removed after
    the block. The directory need not exist yet.

    Args:
      directory: Any directory.

    Raises:
      UserError: If a link is needed and none can be made.
    """
    path = Path(directory).absolute()
    if _PLAIN.fullmatch(str(path)):
        yield path
        return
    # The link stands in a folder of its own, whose name nobody else can take.
    folder = _private_folder(path)
    try:
        link = folder / "directory"
        link.symlink_to(path, target_is_directory=True)
        yield link
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _private_folder(path: Path) -> Path:
    for place in (tempfile.gettempdir(), *_USUAL):
        if _PLAIN.fullmatch(place):
            with contextlib.suppress(OSError):
                return Path(tempfile.mkdtemp(prefix="attention_jax_", dir=place))
    raise UserError(
        f"{path}: a name with other signs than letters, digits and /._=+- needs a directory for "
        "temporary files in which a link can be made, found none (TMPDIR)"
    )
