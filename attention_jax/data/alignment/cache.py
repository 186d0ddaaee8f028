"""Cache of word alignments beside the prepared data sets: a text is aligned only once."""

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from attention_jax.data import storage
from attention_jax.data.alignment.aligners import DIRECTIONS, align, signature
from attention_jax.data.alignment.bitext import Links, Sentence
from attention_jax.data.alignment.ibm1 import Report
from attention_jax.data.text.vocabulary import write_atomically


def align_once(
    sources: Sequence[Sentence],
    targets: Sequence[Sentence],
    method: str,
    report: Report = lambda line: None,
    directions: Sequence[str] = DIRECTIONS,
) -> list[list[Links]]:
    """Word alignment: returns what `align` finds in each direction, from the cache if it is there.

    The key is a hash of all words, the method and its settings, but not of how the directions are
    symmetrised later. Of several processes, one aligns and the others wait. For the arguments see
    `align`.

    Raises:
      UserError: As `align`, and if the cache cannot be written.
    """
    root = storage.cache_root() / "alignments"
    path = root / f"{method}-{_key(sources, targets, method, directions)}.npz"
    with storage.exclusive(root / "locks" / path.stem):
        found = _read(path, ([*map(len, sources)], [*map(len, targets)]), directions)
        if found is not None:
            report(f"{method}  word links are taken from {path}")
            return found
        found = align(sources, targets, method, directions, report=report)
        write_atomically(path, _packed(found, directions))
    return found


def _key(
    sources: Sequence[Sentence],
    targets: Sequence[Sentence],
    method: str,
    directions: Sequence[str],
) -> str:
    """Hashes all that the links depend on."""
    which = "" if tuple(directions) == DIRECTIONS else f" {' '.join(directions)}"
    digest = hashlib.sha256(f"{signature(method)}{which}".encode())
    for side in (sources, targets):
        digest.update(f"\n{len(side)}\n".encode())
        for sentence in side:
            # NUL and line ends keep apart what would be the same letters run together.
            digest.update("".join(f"{word}\0" for word in sentence).encode() + b"\n")
    return digest.hexdigest()[:20]


def _packed(
    found: Sequence[Sequence[Links]], directions: Sequence[str] = DIRECTIONS
) -> bytes:
    """Serialises links as flat arrays: the number of links of each pair, and all links."""
    arrays: dict[str, np.ndarray] = {}
    for direction, alignments in zip(directions, found, strict=True):
        arrays[f"{direction}_counts"] = np.array([len(links) for links in alignments], np.uint32)
        flat = [link for links in alignments for link in links]
        # Reshaped for the case of no links at all; words of aligned pairs fit 16 bits.
        arrays[f"{direction}_links"] = np.array(flat, np.uint16).reshape(-1, 2)
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    return content.getvalue()


def _read(
    path: Path, lengths: tuple[list[int], list[int]], directions: Sequence[str]
) -> list[list[Links]] | None:
    """Reads a file of the cache; None if it is missing, damaged, or of another text."""
    try:
        with np.load(io.BytesIO(path.read_bytes())) as arrays:
            return [
                _unpacked(arrays[f"{direction}_counts"], arrays[f"{direction}_links"], lengths)
                for direction in directions
            ]
    except Exception:  # zip files alone have a dozen ways to be damaged, with an exception each
        return None


def _unpacked(
    counts: np.ndarray, links: np.ndarray, lengths: tuple[list[int], list[int]]
) -> list[Links]:
    """Undoes `_packed` for one direction; raises `ValueError` if links do not fit the lengths."""
    if (counts.dtype, links.dtype) != (np.uint32, np.uint16) or links.shape[1:] != (2,):
        raise ValueError("arrays of something else")
    if counts.shape != (len(lengths[0]),) or counts.sum() != len(links):
        raise ValueError("links of another text")
    if any((links[:, side] >= np.repeat(lengths[side], counts)).any() for side in (0, 1)):
        raise ValueError("links beyond the last word")
    flat = [(source, target) for source, target in links.tolist()]
    ends = np.cumsum(counts).tolist()
    return [flat[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]
