"""emoji: pictures of emoji and their names in English, German, French or Japanese."""

import dataclasses
import gzip
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from attention_jax.configuration import setting
from attention_jax.data import storage
from attention_jax.data.builders.splitting import split_of
from attention_jax.data.captions import PICTURE, PictureConfig
from attention_jax.data.config import Corpus
from attention_jax.data.pictures import CHANNELS, Cells, Picture, read_picture, to_cells
from attention_jax.errors import DataError

LANGUAGES = ("en", "de", "fr", "ja")
SHEET = "sheet_google_256_32.png"
_SIDE, _BORDER = 32, 1  # of a picture in the sheet, in pixels
_HELD_OUT = 0.1  # the share of each of validation and test
_FOLDER = "emoji"
_PICTURES = "https://cdn.jsdelivr.net/npm/emoji-datasource-google@16.0.0/"
_NAMES = (
    "https://raw.githubusercontent.com/unicode-org/cldr-json/"
    "b08a82b582f1120d630d623f9e5073316741574d/cldr-json/"
)
_VARIATION = "\ufe0f"  # asks for a picture in place of a sign; names are kept without it


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(PictureConfig):
    """Noto's pictures of 32 x 32 pixels, and the names that Unicode's CLDR has for them.

    Further fields are those of `data.captions.PictureConfig`.

    Attributes:
      language: Of the names.
      split_by: What is in one split only: a `base` with all of its skin tones, so that the words of
        a name may be unknown; or a `picture`.
    """

    name: str = setting("emoji", choices=("emoji",))
    height: int = setting(_SIDE, choices=(_SIDE,))
    colours: str = setting("rgb", choices=tuple(CHANNELS))
    language: str = setting("en", choices=LANGUAGES)
    split_by: str = setting("base", choices=("base", "picture"))

    def load(self) -> Corpus:
        """Cuts the sheet of pictures, and names them.

        Raises:
          DataError: If a file cannot be obtained, or is not as it was.
        """
        splits: dict[str, list[tuple]] = {"train": [], "validation": [], "test": []}
        for each in named_pictures((self.language,), self.split_by, self.colours, self.cell):
            splits[each.split].append((each.codes, each.names, {PICTURE.name: each.cells}))
        return splits


class NamedPicture(NamedTuple):
    """A picture and its names.

    Attributes:
      split: Where it belongs.
      codes: Its code points in hexadecimal digits, such as `1F600`.
      names: In the languages asked for.
      cells: The picture.
    """

    split: str
    codes: str
    names: tuple[str, ...]
    cells: Cells


def named_pictures(
    languages: Sequence[str], split_by: str, colours: str, cell: int
) -> Iterator[NamedPicture]:
    """Yields the pictures that have names in all of the languages; see `Config`.

    Raises:
      DataError: If a file cannot be obtained, or is not as it was.
    """
    known, sheet = [*map(_names, languages)], _sheet(colours)
    for base, entry in _entries():
        codes = entry["unified"]
        characters = _characters(codes).replace(_VARIATION, "")
        if any(characters not in names for names in known):
            continue
        key = base if split_by == "base" else codes
        split = split_of(f"emoji {key}", validation=_HELD_OUT, test=_HELD_OUT)
        names = tuple(names[characters] for names in known)
        yield NamedPicture(split, codes, names, to_cells(_cut(sheet, entry), cell))


def _entries() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yields each picture that the sheet has, after the code of its base."""
    for entry in json.loads(_content("emoji.json", f"{_PICTURES}emoji.json")):
        for each in (entry, *entry.get("skin_variations", {}).values()):
            if each["has_img_google"]:
                yield entry["unified"], each


def _names(language: str) -> dict[str, str]:
    """Returns the name of each emoji, by its characters."""
    names = {}
    for part, package in (("annotations", "full"), ("annotationsDerived", "derived-full")):
        url = f"{_NAMES}cldr-annotations-{package}/{part}/{language}/annotations.json"
        content = json.loads(_content(f"cldr.{part}.{language}.json", url))
        for characters, known in content[part]["annotations"].items():
            if "tts" in known:
                names[characters.replace(_VARIATION, "")] = known["tts"][0]
    return names


def _sheet(colours: str) -> Picture:
    digest = storage.recorded_digests(__file__)[SHEET]
    path = storage.obtain(f"{_FOLDER}/{SHEET}", f"{_PICTURES}img/google/sheets-256/32.png", digest)
    return read_picture(path, colours)


def _cut(sheet: np.ndarray, entry: Mapping[str, Any]) -> np.ndarray:
    pitch = _SIDE + 2 * _BORDER
    left, top = (pitch * entry[f"sheet_{axis}"] + _BORDER for axis in "xy")
    return sheet[top : top + _SIDE, left : left + _SIDE]


def _characters(codes: str) -> str:
    return "".join(chr(int(code, 16)) for code in codes.split("-"))


def _content(name: str, url: str) -> bytes:
    """Returns a verified file's content; in the user's own folder it may be compressed."""
    digest, root = storage.recorded_digests(__file__)[name], storage.data_root()
    packed = root / _FOLDER / f"{name}.gz" if root is not None else None
    if packed is None or not packed.is_file():
        return storage.obtain(f"{_FOLDER}/{name}", url, digest).read_bytes()
    try:
        content = gzip.decompress(packed.read_bytes())
    except (OSError, EOFError) as error:
        raise DataError(f"{packed}: expected a gzip file, found a damaged one ({error})") from None
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise DataError(f"{packed}: expected sha256 {digest} of its content, found {found}")
    return content
