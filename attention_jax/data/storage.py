"""Data files: downloads with checksums, and the folders of raw and of prepared data.

Two environment variables decide: `ATTENTION_JAX_DATA` names a folder of files that the user
already has, and `ATTENTION_JAX_CACHE` (default `~/.cache/attention_jax`, or below
`XDG_CACHE_HOME`) is where downloads and prepared data sets go.
"""

import contextlib
import csv
import gzip
import hashlib
import http.client
import os
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path

from absl import logging

from attention_jax.errors import DataError
from attention_jax.files import replacing
from attention_jax.locks import locked
from attention_jax.paths import expanded, user_cache

_CHUNK_BYTES = 1 << 20
_TIMEOUT_SECONDS = 30.0
_ALGORITHMS = {32: "md5", 64: "sha256"}  # by the number of hexadecimal digits


def data_root() -> Path | None:
    """Returns the folder of files that the user already has, or None if none is named.

    Raises:
      DataError: If `ATTENTION_JAX_DATA` names something that is not a folder.
    """
    named = os.environ.get("ATTENTION_JAX_DATA", "")
    if not named:
        return None
    root = expanded(named)
    if not os.path.isdir(root):
        raise DataError(f"ATTENTION_JAX_DATA: expected a folder, found {named!r}")
    return root


def cache_root() -> Path:
    """Returns the folder of downloads and prepared data, creating it if need be.

    Raises:
      DataError: If it cannot be created or written.
    """
    named = os.environ.get("ATTENTION_JAX_CACHE")
    root = expanded(named) if named else user_cache()
    try:
        root.mkdir(parents=True, exist_ok=True)
        # The one sure test: permission bits know nothing of quotas and read-only file systems.
        with tempfile.TemporaryFile(dir=root):
            pass
    except OSError as error:
        raise DataError(
            f"ATTENTION_JAX_CACHE: expected a writable folder, found {str(root)!r} "
            f"({error.strerror})"
        ) from None
    return root


@contextlib.contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """File lock: lets one process at a time run the block.

    The operating system releases the lock when its holder dies, however it dies.

    Raises:
      DataError: If the lock file cannot be made.
    """
    # A stack, so that errors of the block itself are not taken for those of the lock.
    with contextlib.ExitStack() as lock:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock.enter_context(locked(path))
        except OSError as error:
            raise DataError(f"{path} cannot be written: {error.strerror or error}") from None
        yield


def recorded_digests(builder_file: str) -> dict[str, str]:
    """Checksums: reads the `checksums.tsv` beside a builder, as {file name: hexadecimal digest}.

    The columns are those of TFDS: address, size in bytes, SHA-256, file name.
    """
    path = Path(builder_file).with_name("checksums.tsv")
    with path.open(newline="") as handle:
        return {row[3]: row[2] for row in csv.reader(handle, delimiter="\t")}


def check_digest(path: Path, digest: str, *, unpacked: bool = False) -> None:
    """Checksum: compares a file with its recorded digest.

    Args:
      path: The file.
      digest: Hexadecimal SHA-256 (64 digits) or MD5 (32 digits).
      unpacked: Whether the digest is that of what the gzip file holds.

    Raises:
      DataError: If they differ, or the file cannot be unpacked.
    """
    algorithm = _ALGORITHMS[len(digest)]
    try:
        with gzip.open(path) if unpacked else path.open("rb") as handle:
            found = hashlib.file_digest(handle, algorithm).hexdigest()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: expected a gzip file that can be unpacked ({error})") from None
    if found != digest:
        raise DataError(f"{path}: expected {algorithm} {digest}, found {found}")


def obtain(relative: str, url: str, digest: str | None) -> Path:
    """Download: returns a verified data file, from the user's folder if it is there.

    Args:
      relative: Path below `ATTENTION_JAX_DATA`, where `.gz` may follow it if the file is packed
        there, and below the cache's `downloads` folder.
      url: Public address of the file.
      digest: Its SHA-256 or MD5, which is checked wherever the file comes from; None for an archive
        that is packed anew for every download, of which the caller has to check what is in it.

    Raises:
      DataError: If the file cannot be downloaded or does not have the digest.
    """
    for own in _at_hand(relative):
        if digest is not None:
            check_digest(own, digest, unpacked=own.suffix == ".gz" != Path(relative).suffix)
        return own
    path = cache_root() / "downloads" / relative
    # Whoever had to wait for the lock finds the file that another process has downloaded.
    with exclusive(path.with_name(path.name + ".lock")):
        if not path.is_file():
            logging.info("Downloading %s", url)
            _download(url, path, digest)
    if digest is not None:
        check_digest(path, digest)
    return path


def _at_hand(relative: str) -> list[Path]:
    """Lists the forms of a file that are in the user's folder, the plain one first."""
    root = data_root()
    forms = [] if root is None else [root / relative, root / f"{relative}.gz"]
    return [form for form in forms if form.is_file()]


def _download(url: str, path: Path, digest: str | None) -> None:
    """Downloads a file; it appears under its name only when it is complete and verified."""
    place = path.relative_to(cache_root() / "downloads")
    try:
        with replacing(path) as partial:
            with partial.open("wb") as handle:
                handle.writelines(_received(url, place))
            try:
                if digest is not None:
                    check_digest(partial, digest)
            except DataError as error:
                # The temporary file's name would say nothing; the address does.
                raise DataError(f"{url}: {str(error).split(': ', 1)[1]}") from None
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from None


def _received(url: str, place: Path) -> Iterator[bytes]:
    """Yields the content of an address; messages suggest to put the file at `place` by hand."""
    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_SECONDS) as response:
            while chunk := response.read(_CHUNK_BYTES):
                yield chunk
    except (OSError, urllib.error.URLError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or " ".join(str(error).split())[:200]
        raise DataError(
            f"{url}: could not be downloaded ({reason}); place the file at "
            f"$ATTENTION_JAX_DATA/{place} instead"
        ) from None
