"""Files of aligners: what is read is what was written, and a damaged file is one line."""

import hashlib
import io
import json

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


def forged(path, **changes):
    """Writes an aligner again with other arrays, under a checksum that is right."""
    _, _, packed = path.read_bytes().partition(b"\n")
    with np.load(io.BytesIO(packed)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    for name, change in changes.items():
        name = name.replace("__", "/")
        arrays[name] = change(arrays[name]) if callable(change) else change
    content = io.BytesIO()
    np.savez_compressed(content, **{k: v for k, v in arrays.items() if v is not None})
    sign(path, content.getvalue())


def sign(path, packed):
    heading = f"attention_jax-aligner 1 {hashlib.sha256(packed).hexdigest()}\n"
    path.write_bytes(heading.encode() + packed)


def told(method="hmm", directions=("forward", "reverse")):
    about = json.dumps({"method": method, "directions": directions})
    return np.frombuffer(about.encode(), np.uint8)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"about": None}, "found nothing as 'about'"),
        ({"about": np.frombuffer(b"{", np.uint8)}, "expected JSON, found something else"),
        ({"about": np.frombuffer(b"[" * 10_000, np.uint8)}, "values within values"),
        ({"about": told(method="fast")}, "one of agreement, hmm, ibm1, spelling at method"),
        ({"about": told(directions=["up"])}, "expected one of forward, reverse at directions[0]"),
        ({"about": told(directions=[])}, "found one of no direction"),
        ({"about": told(method="ibm1")}, "found jumps that do not go with ibm1"),
        ({"forward__probs": None}, "found nothing as 'forward/probs'"),
        ({"forward__probs": lambda a: a[:2]}, "other numbers of probabilities than of word pairs"),
        ({"forward__probs": lambda a: a.astype("U5")}, "found <U5 in place of numbers"),
        ({"forward__probs": lambda a: a * np.nan}, "numbers that are not finite"),
        ({"forward__probs": lambda a: a - 2}, "probabilities below 0 or above 1"),
        ({"forward__unseen_probs": lambda a: a[1:]}, "other numbers of probabilities than of word"),
        ({"forward__sources": lambda a: a + 0.5}, "found float64 in place of whole numbers"),
        ({"forward__sources": lambda a: a - 99}, "pairs of other words than those"),
        ({"forward__targets": lambda a: a + 99}, "pairs of other words than those"),
        ({"forward__sources": lambda a: a[::-1]}, "word pairs out of order"),
        ({"reverse__jumps": lambda a: a[1:]}, "no weights of jumps of the direction reverse"),
        ({"reverse__jumps": lambda a: a[:0]}, "found jumps that do not go with hmm"),
        ({"reverse__jumps": lambda a: a * 0}, "no weights of jumps"),
        ({"reverse__jumps": lambda a: a[None]}, "found 2 axes in place of 1"),
        ({"forward__source_words": np.frombuffer(b"\xff", np.uint8)}, "words that are no UTF-8"),
        ({"forward__source_words": np.zeros(0, np.uint8)}, "than of words"),
    ],
)
def test_what_a_stranger_has_signed_is_looked_at(kept, changes, words):
    forged(kept[0])
    assert read_aligner(kept[0]).method == "hmm"
    forged(kept[0], **changes)
    with pytest.raises(DataError) as caught:
        read_aligner(kept[0])
    assert words in str(caught.value) and str(caught.value).startswith(str(kept[0]))


@pytest.mark.parametrize("packed", [b"", b"garbage"])
def test_signed_garbage_is_one_line(kept, packed):
    sign(kept[0], packed)
    with pytest.raises(DataError, match="found no archive of NumPy's"):
        read_aligner(kept[0])
