"""Features: arrays of users' files as sequences of vectors, and what is wrong with others."""

import numpy as np
import pytest

from attention_jax.data.builders.features import Config
from attention_jax.data.captions import PICTURE
from attention_jax.data.loading import build_task
from attention_jax.errors import ConfigError, DataError

ROWS, COLUMNS, DEPTH = 2, 3, 8
SIZES = {"train_table": "any", "rows": ROWS, "depth": DEPTH}


@pytest.fixture
def grid(numpy_rng):
    found = numpy_rng.normal(size=(ROWS, COLUMNS, DEPTH))
    found[1, 2, 3] = 5.0
    return found


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_a_grid_is_read_column_by_column(tmp_path, grid, suffix):
    path = tmp_path / f"grid.{suffix}"
    with path.open("wb") as file:
        np.save(file, grid) if suffix == "npy" else np.savez(file, grid)
    (vectors,) = Config(**SIZES).read_files([path])
    assert vectors.shape == (ROWS * COLUMNS, DEPTH) and vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors[3], np.float32(grid[1, 1]))
    array = PICTURE.collate([vectors], np.array([0]), {"S": 8, "pixels": DEPTH})
    np.testing.assert_array_equal(array["source"][0, :6], vectors)  # no bytes, so not scaled


def test_vectors_without_a_place_are_a_row(tmp_path, grid):
    np.save(tmp_path / "vectors.npy", grid[0])
    config = Config(train_table="any", rows=1, depth=DEPTH)
    (vectors,) = config.read_files([tmp_path / "vectors.npy"])
    np.testing.assert_array_equal(vectors, np.float32(grid[0]))
    canvas = config.canvas(vectors)
    assert canvas.pixels.shape == (16, 48, 3) and canvas.boxes[2].tolist() == [32, 0, 48, 16]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda grid: None, "expected features, found no such file"),
        (lambda grid: b"no array", "expected a file of NumPy's, found another ("),
        (lambda grid: np.array(["a"]), "expected an array of numbers, found one of <U1"),
        (lambda grid: grid[..., :7], "expected an array of 2 x W x 8 numbers, .*one of 2 x 3 x 7"),
        (lambda grid: grid[:1], "expected an array of 2 x W x 8 numbers, .*one of 1 x 3 x 8"),
        (lambda grid: grid[0], "expected an array of 2 x W x 8 numbers, .*one of 3 x 8"),
        (lambda grid: grid[:, :0], "expected an array of 2 x W x 8 numbers, .*one of 2 x 0 x 8"),
        (lambda grid: np.where(grid > 4, np.nan, 0), "expected finite numbers, found 1 that"),
        (lambda grid: grid * 1e300, "expected finite numbers, found 48 that are none"),
    ],
)  # fmt: skip
def test_what_is_no_grid_is_one_line(tmp_path, grid, made, message):
    path, content = tmp_path / "x.npy", made(grid)
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        np.save(path, content)
    with pytest.raises(DataError, match=message.replace("(", r"\(")) as error:
        Config(**SIZES).read_files([path])
    assert str(error.value).startswith(f"{path}: ") and "\n" not in str(error.value)


def test_a_damaged_archive_is_one_line(tmp_path, grid):
    path = tmp_path / "x.npz"
    np.savez_compressed(path, grid)
    content = path.read_bytes()
    for at in range(60, len(content) - 90, 7):  # of what is compressed
        path.write_bytes(content[:at] + b"\xff" * 9 + content[at + 9 :])
        with pytest.raises(DataError, match=r"x\.npz: expected "):
            Config(**SIZES).read_files([path])


def test_an_archive_has_one_array(tmp_path, grid):
    np.savez(tmp_path / "two.npz", grid, grid)
    with pytest.raises(DataError, match="expected one array, found 2 in the archive"):
        Config(**SIZES).read_files([tmp_path / "two.npz"])


def test_a_table_names_the_files_of_its_folder(tmp_path, grid):
    rows = []
    for number in range(4):
        np.save(tmp_path / f"{number}.npy", grid + number)
        rows.append(f"{number}.npy\tcaption {number}\n")
    table = tmp_path / "captions.tsv"
    table.write_text("".join(rows))
    files = dict.fromkeys(("train_table", "validation_table", "test_table"), str(table))
    split = build_task(Config(**{**SIZES, **files}), tmp_path / "vocab").split("test")
    assert split.targets[2] == "caption 2"
    np.testing.assert_allclose(split.extras["source"][2][0], grid[0, 0] + 2, rtol=1e-6)


def test_a_depth_that_batches_do_not_have_is_refused():
    with pytest.raises((ConfigError, ValueError), match="depth: expected a multiple of 8, found 9"):
        Config(train_table="any", depth=9)
