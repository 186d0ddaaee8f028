"""Tables of captions: which image has which captions, in the forms in which such data is published.

  file<TAB>caption       a line for each caption; an image may have several
  file#0<TAB>caption     the same with numbers, as the token files of Flickr8k and Flickr30k
  file<TAB>text<TAB>text the same with a text that is read beside the image, and one that is written
  FILE.json              the export of COCO: `images` (`id`, `file_name`) and `annotations`
                         (`image_id`, `caption`)
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from attention_jax.data.builders.blocks import Example, ManySided, grouped
from attention_jax.data.captions import BESIDE, checked_caption
from attention_jax.data.lines import read_lines
from attention_jax.errors import DataError
from attention_jax.json_files import read_json

_NUMBER = re.compile(r"#\d+$")
_COCO = {
    "images": [{"id": int, "file_name": str}],
    "annotations": [{"image_id": int, "caption": str}],
}


def read_captions(table: str | Path, folder: str | Path) -> list[Example]:
    """Reads a table of captions.

    Args:
      table: Its path; one that ends in `.json` is a COCO export.
      folder: Where the files are.

    Returns:
      An example for each file that has captions: its path in the folder, and its captions.

    Raises:
      DataError: Naming table and line, if a line is none, names a file that is not there, or has an
        empty caption.
    """
    rows = _of_coco(Path(table)) if str(table).endswith(".json") else _of_lines(Path(table))
    found = []
    for file, caption, where in rows:
        if not os.path.isfile(path := Path(folder) / file):
            raise DataError(f"{where}: expected a file, found none at {path}")
        found.append((file, checked_caption(caption, where)))
    if not found:
        raise DataError(f"{table}: expected captions, found none")
    return grouped(found)


def read_seen_texts(table: str | Path, folder: str | Path) -> list[ManySided]:
    """Reads a table of texts beside images, `FILE<TAB>SOURCE<TAB>TARGET` a line.

    Args:
      table: Its path.
      folder: Where the images are.

    Returns:
      An example for each line, whose further source `picture` is the path of its image.

    Raises:
      DataError: Naming table and line, if a line is none, names a file that is not there, or has an
        empty text.
    """
    found = []
    for number, line in enumerate(read_lines(table), start=1):
        where, columns = f"{table}:{number}", line.split("\t")
        if len(columns) != 3:
            raise DataError(f"{where}: expected FILE<TAB>SOURCE<TAB>TARGET, found {line!r:.80}")
        path = Path(folder) / columns[0].strip()
        if not os.path.isfile(path):
            raise DataError(f"{where}: expected an image file, found none at {path}")
        source, target = (checked_caption(text, where) for text in columns[1:])
        found.append(ManySided(source, (target,), {BESIDE.name: str(path)}))
    return found


def _of_lines(table: Path) -> Iterator[tuple[str, str, str]]:
    """Yields file, caption and place of every line."""
    for number, line in enumerate(read_lines(table), start=1):
        where = f"{table}:{number}"
        file, tab, caption = line.partition("\t")
        file = _NUMBER.sub("", file.strip())
        if not tab or not file:
            raise DataError(f"{where}: expected FILE<TAB>CAPTION, found {line!r:.80}")
        yield file, caption, where


def _of_coco(table: Path) -> Iterator[tuple[str, str, str]]:
    """Yields file, caption and place of every annotation."""
    try:
        content = read_json(table, _COCO)
    except FileNotFoundError:
        raise DataError(f"{table}: expected a table of captions, found no such file") from None
    files = {image["id"]: image["file_name"] for image in content["images"]}
    for number, annotation in enumerate(content["annotations"]):
        where, image = f"{table}: annotations[{number}]", annotation["image_id"]
        if image not in files:
            raise DataError(f"{where}: expected the id of an image, found {image}")
        yield files[image], annotation["caption"], where
