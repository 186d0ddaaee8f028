import numpy as np
import pytest

from attention_jax.errors import RunDirectoryError
from attention_jax.sweeps.kept_files import (
    array_lines,
    keep_lines,
    kept_arrays,
    kept_lines,
    text_array,
)


@pytest.fixture
def file(tmp_path, numpy_rng):
    path = tmp_path / "counts.npz"
    np.savez_compressed(path, words=numpy_rng.integers(0, 9, 999), more=np.arange(3.0))
    return path


def test_all_arrays_are_read(file):
    found = kept_arrays(file, "counts")
    assert sorted(found) == ["more", "words"] and found["words"].shape == (999,)


def damages(data):
    flipped = bytearray(data)
    flipped[100:110] = bytes(255 - byte for byte in flipped[100:110])
    return {"cut off": data[: len(data) // 2], "flipped": bytes(flipped), "empty": b"",
            "text": b"text"}  # fmt: skip


@pytest.mark.parametrize("damage", ["cut off", "flipped", "empty", "text"])
def test_damage_is_one_line(file, damage):
    file.write_bytes(damages(file.read_bytes())[damage])
    with pytest.raises(RunDirectoryError, match="counts.npz: expected counts") as error:
        kept_arrays(file, "counts")
    assert "\n" not in str(error.value)


def test_a_missing_file_and_a_single_array_are_one_line(tmp_path):
    np.save(tmp_path / "one.npy", np.arange(3))
    for name in ("none.npz", "one.npy"):
        with pytest.raises(RunDirectoryError, match=f"{name}: expected counts"):
            kept_arrays(tmp_path / name, "counts")


@pytest.mark.parametrize("damage", ["cut off", "flipped", "empty", "text"])
def test_damaged_outputs_are_one_line(tmp_path, damage):
    path = tmp_path / "outputs.gz"
    keep_lines(path, (f"sentence {number * number}" for number in range(300)))
    path.write_bytes(damages(path.read_bytes())[damage])
    if damage == "empty":  # no sentence at all, which is for the caller to see
        assert kept_lines(path) == []
    else:
        with pytest.raises(RunDirectoryError, match=r"outputs.gz: expected lines of text"):
            kept_lines(path)


def test_lines_are_read_as_they_were_written(tmp_path):
    path = tmp_path / "outputs.gz"
    keep_lines(path, ["x", "", "ä b"])
    assert kept_lines(path) == ["x", "", "ä b"]
    with pytest.raises(RunDirectoryError, match="none.gz: expected lines of text"):
        kept_lines(tmp_path / "none.gz")


def test_lines_of_an_array_come_back_as_they_were():
    lines = ["▁über", "x\u00a0y", "", "</s>"]
    assert text_array(lines).dtype == np.uint8 and array_lines(text_array(lines)) == lines
