"""pictures: the user's own folder of images with a table of captions."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attention_jax.configuration import setting
from attention_jax.data.builders.blocks import Example
from attention_jax.data.caption_tables import read_captions
from attention_jax.data.captions import PICTURE, CaptionConfig
from attention_jax.data.config import Corpus
from attention_jax.data.own_tables import OwnTables
from attention_jax.data.pictures import read_cells


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(OwnTables, CaptionConfig):
    """Images in a folder, and tables of their captions; see `data.caption_tables` for the forms.

    Further fields are those of `data.own_tables.OwnTables` and `data.captions.CaptionConfig`.

    Attributes:
      folder: Where the images are that tables name; that of each table if empty.
    """

    name: str = setting("pictures", choices=("pictures",))
    folder: str = setting("", is_file=True)

    def __post_init__(self) -> None:
        """Checks the tables, and the height."""
        OwnTables.__post_init__(self)
        CaptionConfig.__post_init__(self)

    def load(self) -> Corpus:
        """Reads the tables, and the images that they name; an image is in one split only."""
        named = self.read(lambda table: read_captions(table, self._folder_of(table)))
        return {split: self._with_pictures(split, examples) for split, examples in named.items()}

    def _folder_of(self, table: str) -> Path:
        return Path(self.folder) if self.folder else Path(table).parent

    def _with_pictures(
        self, split: str, examples: Sequence[Example]
    ) -> list[tuple[str, tuple[str, ...], Mapping[str, Any]]]:
        (table,) = self.files(split)
        folder = self._folder_of(table or self.train_table)  # what is held out is of the training
        paths = [folder / example.source for example in examples]
        pictures = read_cells(paths, self.colours, self.height, self.cell)
        return [
            (*example, {PICTURE.name: cells})
            for example, cells in zip(examples, pictures, strict=True)
        ]
