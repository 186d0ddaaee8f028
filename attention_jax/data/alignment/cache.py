"""What aligners found, kept beside the prepared data sets: runs on one text align it once."""

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
) -> list[list[Links]]:
    """Returns what `align` finds in both directions, from the cache where it was found before.

    The key is a hash of all words, the method and its settings; how the directions are joined
    later has no part in it. Of several processes one aligns and the others wait.

    Args:
      sources: As for `align`.
      targets: As for `align`.
      method: As for `align`.
      report: As for `align`.

    Raises:
      UserError: As `align`, and if the cache cannot be written.
    """
    root = storage.cache_root() / "alignments"
    path = root / f"{method}-{_key(sources, targets, method)}.npz"
    with storage.exclusive(root / "locks" / path.stem):
        found = _read(path, ([*map(len, sources)], [*map(len, targets)]))
        if found is not None:
            report(f"{method}  word links are taken from {path}")
            return found
        found = align(sources, targets, method, report=report)
        write_atomically(path, _packed(found))
    return found


def _key(sources: Sequence[Sentence], targets: Sequence[Sentence], method: str) -> str:
    digest = hashlib.sha256(signature(method).encode())
    for side in (sources, targets):
        digest.update(f"\n{len(side)}\n".encode())
        for sentence in side:
            digest.update("".join(f"{word}\0" for word in sentence).encode() + b"\n")
    return digest.hexdigest()[:20]


def _packed(found: Sequence[Sequence[Links]]) -> bytes:
    arrays: dict[str, np.ndarray] = {}
    for direction, alignments in zip(DIRECTIONS, found, strict=True):
        arrays[f"{direction}_counts"] = np.array([len(links) for links in alignments], np.uint32)
        flat = [link for links in alignments for link in links]
        arrays[f"{direction}_links"] = np.array(flat, np.uint16).reshape(-1, 2)
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    return content.getvalue()


def _read(path: Path, lengths: tuple[list[int], list[int]]) -> list[list[Links]] | None:
    """Returns what a file of the cache holds, or None if there is none, or a damaged one."""
    try:
        with np.load(io.BytesIO(path.read_bytes())) as arrays:
            return [
                _unpacked(arrays[f"{direction}_counts"], arrays[f"{direction}_links"], lengths)
                for direction in DIRECTIONS
            ]
    except Exception:  # zip files alone have a dozen ways to be damaged, with an exception each
        return None


def _unpacked(
    counts: np.ndarray, links: np.ndarray, lengths: tuple[list[int], list[int]]
) -> list[Links]:
    if (counts.dtype, links.dtype) != (np.uint32, np.uint16) or links.shape[1:] != (2,):
        raise ValueError("arrays of something else")
    if counts.shape != (len(lengths[0]),) or counts.sum() != len(links):
        raise ValueError("links of another text")
    if any((links[:, side] >= np.repeat(lengths[side], counts)).any() for side in (0, 1)):
        raise ValueError("links beyond the last word")
    flat = [(source, target) for source, target in links.tolist()]
    ends = np.cumsum(counts).tolist()
    return [flat[end - count : end] for end, count in zip(ends, counts.tolist(), strict=True)]
