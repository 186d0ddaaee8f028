"""A manifest notices every change to the files that it lists."""

import json
import zlib

import pytest

from attention_jax.runs.checkpoints.manifest import (
    NAME,
    add_to_manifest,
    find_damage,
    write_manifest,
)


@pytest.fixture
def folder(tmp_path):
    """A directory with three files and their manifest."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "data").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "times").write_bytes(b"now")
    write_manifest(tmp_path, except_for=("times",))
    return tmp_path


def test_find_damage_finds_none_where_nothing_changed(folder):
    (folder / "times").write_bytes(b"later")
    (folder / "new").write_bytes(b"unlisted")
    assert find_damage(folder) is None


def test_find_damage_notices_every_flipped_bit(folder):
    data = (folder / "inner" / "data").read_bytes()
    for bit in range(8):
        (folder / "inner" / "data").write_bytes(bytes([data[0] ^ (1 << bit)]) + data[1:])
        assert "inner/data has changed" in find_damage(folder)


def test_find_damage_names_missing_and_shortened_files(folder):
    (folder / "inner" / "data").write_bytes(b"short")
    assert find_damage(folder) == "inner/data has 5 bytes, 10240 were written"
    (folder / "inner" / "data").unlink()
    assert find_damage(folder) == "inner/data is missing"


_STRANGE = f'{{"files": {{"a": {{"bytes": 0, "crc32": "x"}}}}, "crc32": {zlib.crc32(b"{}")}}}'


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"files": 3}', '{"files": {"a": {}}}', _STRANGE, "[" * 9000, "\ud800"],
)
def test_find_damage_notices_a_damaged_manifest(folder, text):
    (folder / NAME).write_bytes(text.encode(errors="surrogatepass"))
    assert find_damage(folder) == f"{NAME} is damaged"


def test_find_damage_raises_without_a_manifest(folder):
    (folder / NAME).unlink()
    with pytest.raises(FileNotFoundError):
        find_damage(folder)


def test_write_manifest_lists_every_file_but_itself(folder):
    write_manifest(folder)
    files = json.loads((folder / NAME).read_text())["files"]
    assert sorted(files) == ["empty", "inner/data", "times"]


def test_a_file_that_is_added_is_watched_like_the_others(folder):
    (folder / "new").write_bytes(b"listed")
    add_to_manifest(folder, "new")
    assert find_damage(folder) is None
    (folder / "new").unlink()
    assert find_damage(folder) == "new is missing"
    (folder / "inner" / "data").unlink()
    assert find_damage(folder) == "inner/data is missing"
