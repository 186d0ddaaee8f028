import gzip
import os
import socket
import subprocess
import sys

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


def test_read_pairs_keeps_white_space_that_may_be_a_word(tmp_path):
    for name, text in (("a", " \u3000 x\t\n"), ("b", "\ty\u00a0 \r\n")):
        (tmp_path / name).write_bytes(text.encode())
    assert read_pairs(tmp_path / "a", tmp_path / "b") == [("\u3000 x", "y\u00a0")]


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


def _read_standard_input(stdin) -> str:
    """What a process of its own reads there."""
    program = "from attention_jax.data.lines import read_standard_input as r; print(r())"
    command = [sys.executable, "-c", program]
    return subprocess.run(command, stdin=stdin, capture_output=True, text=True).stdout.strip()


def test_standard_input_is_read_from_where_somebody_left_it(tmp_path):
    (tmp_path / "text").write_bytes(b"header\na\nb\n")
    with (tmp_path / "text").open("rb", buffering=0) as file:
        assert file.read(7) == b"header\n"
        assert _read_standard_input(file) == "['a', 'b']"


def test_standard_input_may_be_a_socket_that_does_not_wait():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        ours.sendall(b"a\nb\n")
        ours.shutdown(socket.SHUT_WR)
        assert _read_standard_input(theirs) == "['a', 'b']"


def _pipe(content: bytes) -> int:
    read, write = os.pipe()
    os.write(write, content)
    os.close(write)
    return read


def test_a_pipe_may_be_read_again():
    read = _pipe(b"a\nb\n")
    for name in (f"/dev/fd/{read}", f"/proc/self/fd/{read}"):
        assert read_lines(name) == ["a", "b"]
    os.close(read)
    with pytest.raises(DataError, match=f"/dev/fd/{read}: expected a readable file"):
        read_lines(f"/dev/fd/{read}")


def test_another_pipe_is_another_text():
    for content, lines in ((b"a\n", ["a"]), (b"b\n", ["b"])):
        read = _pipe(content)
        assert read_lines(f"/dev/fd/{read}") == lines
        os.close(read)
