"""Tables of captions, in each form, and what is wrong with some."""

import json

import pytest

from attention_jax.data.caption_tables import read_captions, read_seen_texts
from attention_jax.errors import DataError

CAPTIONS = [("a.jpg", ("a dog", "a brown dog")), ("b.jpg", ("two cats",))]


@pytest.fixture
def folder(tmp_path):
    for name in ("a.jpg", "b.jpg"):
        (tmp_path / name).touch()
    return tmp_path


@pytest.mark.parametrize("numbered", [False, True])
def test_lines_are_a_file_and_a_caption(folder, numbered):
    rows = [
        f"{file}{f'#{number}' if numbered else ''}\t{caption} \n"
        for file, captions in CAPTIONS
        for number, caption in enumerate(captions)
    ]
    table = folder / "captions.token"
    table.write_text("".join(rows))
    assert read_captions(table, folder) == CAPTIONS


def test_a_coco_export_has_images_and_annotations(folder):
    table = folder / "captions_val.json"
    images = [{"id": 7 + number, "file_name": file} for number, (file, _) in enumerate(CAPTIONS)]
    annotations = [
        {"image_id": 7 + number, "caption": caption}
        for number, (_, captions) in enumerate(CAPTIONS)
        for caption in captions
    ]
    table.write_text(json.dumps({"images": images, "annotations": annotations}))
    assert read_captions(table, folder) == CAPTIONS
    annotations[2]["image_id"] = 3
    table.write_text(json.dumps({"images": images, "annotations": annotations}))
    with pytest.raises(DataError, match=r"annotations\[2\]: expected the id of an image, found 3"):
        read_captions(table, folder)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a.jpg\ta dog\nb.jpg two cats\n", r"t.tsv:2: expected FILE<TAB>CAPTION, found 'b.jpg two"),
        ("a.jpg\t \n", r"t.tsv:1: expected a caption, found an empty one"),
        ("c.jpg\ta dog\n", r"t.tsv:1: expected a file, found none at .*c.jpg"),
        ("", r"t.tsv: expected one sentence a line, found an empty file"),
    ],
)
def test_a_mistake_in_a_table_is_one_line(folder, content, message):
    table = folder / "t.tsv"
    table.write_text(content)
    with pytest.raises(DataError, match=message):
        read_captions(table, folder)


def test_a_broken_or_missing_export_is_one_line(folder):
    table = folder / "t.json"
    with pytest.raises(DataError, match="t.json: expected a table of captions, found no such file"):
        read_captions(table, folder)
    table.write_text('{"images": [{"id": "7", "file_name": "a.jpg"}], "annotations": []}')
    with pytest.raises(DataError, match=r"t.json: expected a whole number at images"):
        read_captions(table, folder)
    table.write_text('{"images": [{"id": 7, "file_name": "a.jpg"}], "annotations": []}')
    with pytest.raises(DataError, match=r"t\.json: expected captions, found none"):
        read_captions(table, folder)
    images, annotation = [{"id": 7, "file_name": "a.jpg"}], {"image_id": 7, "caption": "a\0b"}
    table.write_text(json.dumps({"images": images, "annotations": [annotation]}))
    with pytest.raises(DataError, match=r"annotations\[0\]: .* found a NUL character"):
        read_captions(table, folder)


def test_texts_stand_beside_an_image(folder):
    table = folder / "pairs.tsv"
    table.write_text("a.jpg\ta  dog\tein Hund\nb.jpg\ttwo cats\tzwei Katzen\n")
    assert read_seen_texts(table, folder) == [
        ("a dog", ("ein Hund",), {"picture": str(folder / "a.jpg")}),
        ("two cats", ("zwei Katzen",), {"picture": str(folder / "b.jpg")}),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("a.jpg\ta dog", r"expected FILE<TAB>SOURCE<TAB>TARGET, found 'a.jpg\\ta dog'"),
        ("c.jpg\ta cat\teine Katze", "expected an image file, found none at .*c.jpg"),
        ("a.jpg\ta dog\t ", "expected a caption, found an empty one"),
    ],
)
def test_a_wrong_line_of_texts_beside_images_is_named(folder, line, message):
    table = folder / "pairs.tsv"
    table.write_text(f"b.jpg\ttwo cats\tzwei Katzen\n{line}\n")
    with pytest.raises(DataError, match=f"pairs.tsv:2: {message}"):
        read_seen_texts(table, folder)
