"""The Free Spoken Digit Dataset: six speakers say ten digits fifty times, at 8 kHz.

Its recordings are `recordings/{digit}_{speaker}_{index}.wav`; those of the indices 0 to 4 are to be
tested on.
"""

import hashlib
import tarfile
import zlib
from collections.abc import Mapping
from pathlib import PurePosixPath

from attention_jax.data import storage
from attention_jax.errors import DataError

SPEAKERS = ("george", "jackson", "lucas", "nicolas", "theo", "yweweler")
RATE = 8000
COMMIT = "26eb9aaf76e81b692f806f9140c2d2777410d7a1"
ADDRESS = f"https://codeload.github.com/Jakobovski/free-spoken-digit-dataset/tar.gz/{COMMIT}"
ARCHIVE = "fsdd/recordings.tar.gz"
# Of the names and contents of all recordings: the archive itself is packed anew for each download.
DIGEST = "2ce2ed45aeca67ecc7d2c01aaa4bc1a6b2d7be82c27faef2f97cedc14da89606"


def obtain_recordings() -> Mapping[str, bytes]:
    """Returns the verified content of every WAV file, by its name without the ending.

    Raises:
      DataError: If the archive cannot be obtained, or is not as it should be.
    """
    path = storage.obtain(ARCHIVE, ADDRESS, None)
    found = {}
    try:
        with tarfile.open(path, "r:gz") as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if member.isfile() and name.suffix == ".wav" and name.parent.name == "recordings":
                    found[name.stem] = archive.extractfile(member).read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise DataError(f"{path}: expected an archive of recordings ({error})") from None
    digest = digest_of(found)
    if digest != DIGEST:
        raise DataError(
            f"{path}: expected recordings with the sha256 {DIGEST}, found {len(found)} with "
            f"{digest}"
        )
    return found


def digest_of(files: Mapping[str, bytes]) -> str:
    """Returns the SHA-256 of names and contents, in the order of the names."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{len(files[name])}\0".encode() + files[name])
    return digest.hexdigest()
