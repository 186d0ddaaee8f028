import gzip

import pytest

from attention_jax.data.lines import read_lines, read_pairs
from attention_jax.errors import DataError


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"a\nb\n", ["a", "b"]),
        (b"a\nb", ["a", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        ("a\u2028b\x0bc\x85d\n".encode(), ["a\u2028b\x0bc\x85d"]),
        ("Käse 猫\n".encode(), ["Käse 猫"]),
    ],
    ids=["plain", "no_last_newline", "crlf", "bom", "empty_line", "other_line_ends", "unicode"],
)
def test_read_lines_accepts(tmp_path, content, lines):
    path = tmp_path / "text"
    path.write_bytes(content)
    assert read_lines(path) == lines


def test_read_lines_decompresses(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"a\nb\n"))
    assert read_lines(path) == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("text", b"a\nb\xff\n", r"text:2: expected UTF-8 text, found byte 0xff at column 2"),
        ("text", b"a\nb\nc\0\n", r"text:3: expected UTF-8 text, found a NUL character"),
        ("text", "a\n".encode("utf-16-le"), r"text:1: expected UTF-8 text, found a NUL"),
        ("text", b"", r"text: expected one sentence a line, found an empty file"),
        ("text.gz", b"a\n", r"text.gz: expected a gzip file, found a damaged one"),
        ("text.gz", gzip.compress(b"a" * 999)[:-9], r"text.gz: expected a gzip file, found a dam"),
    ],
    ids=["utf8", "nul", "utf16", "empty", "no_gzip", "cut_gzip"],
)
def test_read_lines_rejects(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as error:
        read_lines(path)
    assert "\n" not in str(error.value)


def test_read_lines_rejects_missing_files_and_folders(tmp_path):
    with pytest.raises(DataError, match="nowhere: expected a text file, found none"):
        read_lines(tmp_path / "nowhere")
    with pytest.raises(DataError, match="expected a readable file"):
        read_lines(tmp_path)


def test_read_pairs_joins_lines(tmp_path):
    (tmp_path / "a").write_text("one \ntwo\n")
    (tmp_path / "b").write_text("\teins\nzwei\n")
    assert read_pairs(tmp_path / "a", tmp_path / "b") == [("one", "eins"), ("two", "zwei")]


def test_read_pairs_rejects_unequal_line_counts(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\n")
    (tmp_path / "b").write_text("eins\n")
    with pytest.raises(DataError, match=r"b: expected 2 lines as in .*a, found 1"):
        read_pairs(tmp_path / "a", tmp_path / "b")
