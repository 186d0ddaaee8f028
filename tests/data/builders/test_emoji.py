"""Emoji: pictures, names and splits, of a sheet with a handful of them."""

import gzip
import hashlib
import json

import numpy as np
import pytest
from PIL import Image

from attention_jax.data import storage
from attention_jax.data.builders import emoji, emoji_names
from attention_jax.data.loading import build_task
from attention_jax.data.pictures import from_cells
from attention_jax.errors import DataError

PITCH = 34
NUMBER = 30  # bases, each with a variation


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder as that of the data, with pictures that are all of one colour."""
    root = tmp_path / "data"
    (root / "emoji").mkdir(parents=True)
    sheet = np.zeros((PITCH * NUMBER, PITCH * 2, 3), np.uint8)
    entries, names, derived = [], {}, {}
    for number in range(NUMBER):
        code = 0x1F600 + number
        entry = {"unified": f"{code:X}-FE0F", "sheet_x": 0, "sheet_y": number}
        tone = {"unified": f"{code:X}-1F3FB", "sheet_x": 1, "sheet_y": number}
        for each in (entry, tone):
            each["has_img_google"] = number != 1
            top, left = PITCH * number + 1, PITCH * each["sheet_x"] + 1
            sheet[top : top + 32, left : left + 32] = number, each["sheet_x"], 100
        entries.append({**entry, "skin_variations": {"1F3FB": tone}})
        names[chr(code)] = {"tts": [f"face {number}"]}
        derived[f"{chr(code)}\U0001f3fb"] = {"tts": [f"face {number}: light"]}
    in_english = {sign: {"tts": [f"the {each['tts'][0]}"]} for sign, each in names.items()}
    contents = {
        "emoji.json": entries,
        "cldr.annotations.de.json": {"annotations": {"annotations": names}},
        "cldr.annotationsDerived.de.json": {"annotationsDerived": {"annotations": derived}},
        "cldr.annotations.en.json": {"annotations": {"annotations": in_english}},
        "cldr.annotationsDerived.en.json": {"annotationsDerived": {"annotations": {}}},
    }
    digests = {}
    for name, content in contents.items():
        text = json.dumps(content).encode()
        digests[name] = hashlib.sha256(text).hexdigest()
        (root / "emoji" / f"{name}.gz").write_bytes(gzip.compress(text))
    Image.fromarray(sheet).save(root / "emoji" / emoji.SHEET)
    content = (root / "emoji" / emoji.SHEET).read_bytes()
    digests[emoji.SHEET] = hashlib.sha256(content).hexdigest()
    monkeypatch.setenv("ATTENTION_JAX_DATA", str(root))
    monkeypatch.setattr(storage, "recorded_digests", lambda file: digests)
    return root / "emoji"


@pytest.mark.parametrize("split_by", ["base", "picture"])
def test_pictures_have_their_names_and_bases_stay_together(folder, tmp_path, split_by):
    config = emoji.Config(language="de", split_by=split_by)
    task = build_task(config, tmp_path / "vocab")
    where = {}
    for name, split in task.splits.items():
        for codes, text, cells in zip(
            split.sources, split.targets, split.extras["source"], strict=True
        ):
            picture = from_cells(cells, config.rows, config.cell)
            number, tone, _ = map(int, picture[0, 0])
            assert (picture == picture[0, 0]).all() and picture.shape == (32, 32, 3)
            assert text == (f"face {number}: light" if tone else f"face {number}")
            assert codes.startswith(f"{0x1F600 + number:X}-")
            where.setdefault(number, set()).add(name)
    assert set(where) == set(range(NUMBER)) - {1}
    assert all(len(task.split(name)) for name in task.splits)
    assert all(len(names) == 1 for names in where.values()) == (split_by == "base")


@pytest.mark.parametrize("shuffled_pictures", [False, True])
def test_names_in_two_languages_stand_beside_their_picture(folder, tmp_path, shuffled_pictures):
    config = emoji_names.Config(shuffled_pictures=shuffled_pictures)
    task = build_task(config, tmp_path / "vocab")
    numbers, seen = [], []
    for split in task.splits.values():
        for source, target, cells in zip(
            split.sources, split.targets, split.extras["picture"], strict=True
        ):
            assert source == f"the {target}"  # a tone, without a name in English, is left out
            numbers.append(int(target.removeprefix("face ")))
            seen.append(int(from_cells(cells, config.rows, config.cell)[0, 0, 0]))
    assert sorted(numbers) == sorted(seen) == [0, *range(2, NUMBER)]
    assert (numbers == seen) != shuffled_pictures


def test_a_damaged_file_is_one_line(folder, tmp_path):
    path = folder / "emoji.json.gz"
    path.write_bytes(gzip.compress(b"[]"))
    with pytest.raises(DataError, match=r"emoji.json.gz: expected sha256 .* of its content, found"):
        build_task(emoji.Config(language="de"), tmp_path / "vocab")
    path.write_bytes(b"no gzip")
    with pytest.raises(DataError, match=r"emoji.json.gz: expected a gzip file, found a damaged"):
        build_task(emoji.Config(language="de"), tmp_path / "vocab")
