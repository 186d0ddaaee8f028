"""Pictures: files that are read, what is wrong with others, and their cells."""

import numpy as np
import pytest
from PIL import ExifTags, Image

from attention_jax.data.builders.pictures import Config
from attention_jax.data.pictures import cell_boxes, from_cells, read_picture, to_cells
from attention_jax.errors import DataError


def test_cells_are_cut_column_by_column_and_put_together_again(numpy_rng):
    picture = numpy_rng.integers(0, 256, (8, 12, 3), np.uint8)
    cells = to_cells(picture, 4)
    assert cells.shape == (6, 48)
    # Cell 3 is the second row of the second column; in a cell, x comes before y.
    expected = picture[4:8, 4:8].swapaxes(0, 1).ravel()
    np.testing.assert_array_equal(cells[3], expected)
    np.testing.assert_array_equal(from_cells(cells, 2, 4), picture)
    assert cell_boxes(6, 2, 4)[3].tolist() == [4, 4, 8, 8]
    canvas = Config(train_table="any", height=8, cell=4).canvas(cells)
    left, top, right, bottom = canvas.boxes[3]
    np.testing.assert_array_equal(canvas.pixels[top:bottom, left:right], picture[4:8, 4:8])


def test_parts_of_cells_are_filled_with_white():
    cells = to_cells(np.zeros((4, 5, 1), np.uint8), 4)
    whole = from_cells(cells, 1, 4)
    assert whole.shape == (4, 8, 1)
    assert (whole[:, 5:] == 255).all() and not whole[:, :5].any()


@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_images_are_read_in_grey_or_in_colours(tmp_path, suffix):
    path = tmp_path / f"red.{suffix}"
    Image.new("RGB", (6, 4), (255, 0, 0)).save(path)
    grey, rgb = read_picture(path, "grey"), read_picture(path, "rgb")
    assert grey.shape == (4, 6, 1) and rgb.shape == (4, 6, 3)
    assert rgb[0, 0, 0] > 250 and rgb[0, 0, 1] < 5 and 60 < grey[0, 0, 0] < 90
    assert read_picture(path, "grey", height=8).shape == (8, 12, 1)


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P"])
def test_what_is_transparent_is_white(tmp_path, mode):
    path = tmp_path / "clear.png"
    image = Image.new("RGBA", (2, 2), (0, 0, 0, 0))
    image.convert(mode).save(path, **({"transparency": 0} if mode == "P" else {}))
    assert (read_picture(path, "grey") == 255).all()


@pytest.mark.parametrize("suffix", ["png", "tiff"])
@pytest.mark.parametrize(
    ("orientation", "turned"),
    [
        (1, lambda picture: picture),
        (2, np.fliplr),
        (3, lambda picture: np.rot90(picture, 2)),
        (6, lambda picture: np.rot90(picture, -1)),  # the camera was held upright
        (8, np.rot90),
    ],
)
def test_photographs_are_turned_as_the_camera_was_held(tmp_path, numpy_rng, orientation, turned,
                                                       suffix):  # fmt: skip
    path, exif = tmp_path / f"photo.{suffix}", Image.Exif()
    exif[ExifTags.Base.Orientation] = orientation
    picture = numpy_rng.integers(0, 256, (4, 6, 3), np.uint8)
    Image.fromarray(picture).save(path, exif=exif)
    np.testing.assert_array_equal(read_picture(path, "rgb"), turned(picture))
    height, width = turned(picture).shape[:2]
    assert read_picture(path, "grey", height=2 * height).shape == (2 * height, 2 * width, 1)


@pytest.mark.parametrize("damage", [b"MM\0", b"MM\0*\0\0\0", b"MM\0*\0\0\0\x08\0\x05\x01"])
def test_a_picture_whose_exif_data_are_damaged_stays_as_it_is(tmp_path, numpy_rng, damage):
    path, picture = tmp_path / "photo.png", numpy_rng.integers(0, 256, (4, 6, 3), np.uint8)
    Image.fromarray(picture).save(path, exif=b"Exif\0\0" + damage)
    np.testing.assert_array_equal(read_picture(path, "rgb"), picture)


def test_a_file_is_read_once(tmp_path):
    path = tmp_path / "one.png"
    Image.new("L", (4, 4)).save(path)
    one, other = Config(train_table="any", height=4, cell=4).read_files([path, str(path)])
    assert one is other


def test_what_is_no_picture_is_one_line(tmp_path):
    whole = tmp_path / "whole.png"
    noise = np.random.default_rng(0).integers(0, 256, (32, 32), np.uint8)
    Image.fromarray(noise).save(whole)
    cut = tmp_path / "cut.png"
    cut.write_bytes(whole.read_bytes()[:300])
    text = tmp_path / "text.png"
    text.write_text("no picture")
    deep = tmp_path / "deep.tiff"
    Image.fromarray(np.ones((4, 4), np.float32)).save(deep)
    for path, message in (
        (tmp_path / "none.png", "none.png: expected an image, found no such file"),
        (tmp_path, "expected an image, found a broken one"),
        (text, "text.png: expected an image such as PNG or JPEG, found none"),
        (cut, r"cut.png: expected an image, found a broken one \("),
        (deep, "deep.tiff: expected an image of mode 1, .*, found F"),
    ):
        with pytest.raises(DataError, match=message) as error:
            read_picture(path, "grey")
        assert "\n" not in str(error.value)
