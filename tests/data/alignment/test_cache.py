"""What aligners found is read again, or found again where the cache holds something else."""

import io
import zipfile

import numpy as np
import pytest

from attention_jax.data.alignment import cache

SOURCES, TARGETS = [["a", "b"], ["b"]], [["A"], ["B", "C"]]
FOUND = [[[(0, 0)], [(0, 1)]], [[(1, 0)], []]]


@pytest.fixture
def align_once(tmp_path, monkeypatch):
    """Aligns once; returns what was found, and whether the aligner was asked."""
    monkeypatch.setenv("ATTENTION_JAX_CACHE", str(tmp_path))
    asked = []
    monkeypatch.setattr(cache, "align", lambda *_, **__: asked.append(True) or FOUND)

    def run():
        asked.clear()
        return cache.align_once(SOURCES, TARGETS, "ibm1"), bool(asked)

    return run


def _file(tmp_path):
    (path,) = (tmp_path / "alignments").glob("*.npz")
    return path


def _saved(**changed):
    with np.load(io.BytesIO(cache._packed(FOUND))) as arrays:
        content = io.BytesIO()
        np.savez(content, **{**dict(arrays), **changed})
        return content.getvalue()


def _of_unknown_compression():
    content = bytearray(cache._packed(FOUND))
    with zipfile.ZipFile(io.BytesIO(bytes(content))) as archive:
        offsets = [info.header_offset for info in archive.infolist()]
    directory = content.index(b"PK\x01\x02")
    for place in (*(offset + 8 for offset in offsets), directory + 10):
        content[place : place + 2] = (99).to_bytes(2, "little")
    return bytes(content)


def _encrypted():
    content = bytearray(cache._packed(FOUND))
    directory = content.index(b"PK\x01\x02")
    content[6] |= 1
    content[directory + 8] |= 1
    return bytes(content)


def _huge():
    header = io.BytesIO()
    shape = {"descr": "<u4", "fortran_order": False, "shape": (1 << 60,)}
    np.lib.format.write_array_header_1_0(header, shape)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("forward_counts.npy", header.getvalue())
    return content.getvalue()


def test_links_are_found_once(align_once):
    assert align_once() == (FOUND, True)
    assert align_once() == (FOUND, False)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"garbage", cache._packed(FOUND)[:-30], _of_unknown_compression(), _encrypted(),
        _huge(),
        _saved(forward_counts=np.array([1, 1])),
        _saved(forward_counts=np.array([[1, 1]], np.uint32)),
        _saved(forward_counts=np.array([3, 3], np.uint32)),
        _saved(forward_links=np.array([[0, 0, 0], [0, 1, 0]], np.uint16)),
        _saved(forward_links=np.array([[0.0, 0.5], [0, 1]])),
        _saved(forward_links=np.array([["a", "b"], ["c", "d"]])),
        _saved(forward_links=np.array([[0, 0], [1, 1]], np.uint16)),  # of one word
        _saved(reverse_links=np.array([[1, 1]], np.uint16)),  # of one word
    ],
)  # fmt: skip
def test_what_is_not_such_a_file_is_found_again(align_once, tmp_path, content):
    align_once()
    _file(tmp_path).write_bytes(content)
    assert align_once() == (FOUND, True)
    assert align_once() == (FOUND, False)
