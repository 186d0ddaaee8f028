"""Checksums (SHA-256) of files and folders, which identify them wherever they are moved."""

import hashlib
import pathlib


def hash_file(path: pathlib.Path) -> str:
    """Returns a hash of the content of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_files(folder: pathlib.Path, without: str | None = None) -> str:
    """Returns a hash of the names and contents of all files of a folder, but for one name."""
    digest = hashlib.sha256()
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != without)
    for path in sorted(files):
        # NUL ends each part, so that no other split into name and content hashes alike.
        digest.update(f"{path.relative_to(folder)}\0{hash_file(path)}\0".encode())
    return digest.hexdigest()


def hash_any(path: pathlib.Path) -> str | None:
    """Returns a hash of a file or a folder; None where there is neither, or it cannot be read."""
    try:
        return hash_files(path) if path.is_dir() else hash_file(path)
    except OSError:
        return None
