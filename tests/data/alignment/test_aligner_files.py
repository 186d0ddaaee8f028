"""Files of aligners: what is read is what was written, and a damaged file is one line."""

import hashlib

import numpy as np
import pytest

from attention_jax.data.alignment.aligner_files import read_aligner, write_aligner
from attention_jax.data.alignment.trained_aligners import apply, learn
from attention_jax.errors import DataError


@pytest.fixture
def kept(tmp_path, toy):
    """A file, and the aligner in it, whose text has words with characters that end lines."""
    pairs = [*toy, (["\u2028x", "\ry"], ["\x85a", "b\x0b"])]
    aligner = learn(*([*side] for side in zip(*pairs, strict=True)), "hmm")
    write_aligner(tmp_path / "model", aligner)
    return tmp_path / "model", aligner


def test_what_is_read_is_what_was_written(kept):
    path, aligner = kept
    found = read_aligner(path)
    assert found.method == "hmm" and [*found.directions] == [*aligner.directions]
    for name, direction in aligner.directions.items():
        for field, value in vars(direction).items():
            other = getattr(found.directions[name], field)
            np.testing.assert_array_equal(np.asarray(other), np.asarray(value), strict=True)
    text = [["das", "Haus"], ["neu"]], [["the", "house"], ["new"]]
    assert apply(found, *text) == apply(aligner, *text)


def test_a_file_has_no_time_of_writing(kept, tmp_path):
    path, aligner = kept
    write_aligner(tmp_path / "again", aligner)
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda content: content[:-1], "expected what its checksum says, found a damaged file"),
        (lambda content: content + b"\n", "expected what its checksum says"),
        (lambda content: content[:-9] + b"\0" + content[-8:], "expected what its checksum says"),
        (lambda content: content[:40], "expected what its checksum says"),
        (lambda content: b"", "found something else"),
        (lambda content: b"0-0 1-1\n", "found something else"),
        (lambda content: b"\xff" * 500, "found something else"),
        (lambda content: content.replace(b" 1 ", b" 2 ", 1), "an aligner of form 1, found form 2"),
    ],
)
def test_damage_is_one_line(kept, damage, words):
    path, _ = kept
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=words) as caught:
        read_aligner(path)
    assert str(caught.value).startswith(str(path)) and "\n" not in str(caught.value)


def test_no_file_is_one_line(tmp_path):
    with pytest.raises(DataError, match="expected a trained aligner, found no file"):
        read_aligner(tmp_path / "none")
    with pytest.raises(DataError, match="cannot be read"):
        read_aligner(tmp_path)


def test_the_checksum_is_of_all_that_follows_the_heading(kept):
    heading, _, packed = kept[0].read_bytes().partition(b"\n")
    assert heading.decode() == f"attention_jax-aligner 1 {hashlib.sha256(packed).hexdigest()}"
