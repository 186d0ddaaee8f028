"""Captioned files: a folder of what is described, and tables of captions for its files."""

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


@dataclasses.dataclass(frozen=True, kw_only=True)
class CaptionedFiles(OwnTables, CaptionConfig):
    """Files of the user's own with their captions; see `data.caption_tables` for the forms.

    Further fields are those of `data.own_tables.OwnTables` and `data.captions.CaptionConfig`.

    Attributes:
      folder: Where the files are that tables name; that of each table if empty.
    """

    folder: str = setting("", is_file=True)

    def load(self) -> Corpus:
        """Reads the tables, and the files that they name; a file is in one split only."""
        named = self.read(lambda table: read_captions(table, self._folder_of(table)))
        return {split: self._with_content(split, examples) for split, examples in named.items()}

    def _folder_of(self, table: str) -> Path:
        return Path(self.folder) if self.folder else Path(table).parent

    def _with_content(
        self, split: str, examples: Sequence[Example]
    ) -> list[tuple[str, tuple[str, ...], Mapping[str, Any]]]:
        (table,) = self.files(split)
        folder = self._folder_of(table or self.train_table)  # what is held out is of the training
        contents = self.read_files([folder / example.source for example in examples])
        return [
            (*example, {PICTURE.name: cells})
            for example, cells in zip(examples, contents, strict=True)
        ]
