"""seen_texts: the user's own texts in two languages, each pair beside an image."""

import dataclasses
from pathlib import Path

from attention_jax.configuration import setting
from attention_jax.data.builders.blocks import ManySided
from attention_jax.data.caption_tables import read_seen_texts
from attention_jax.data.captions import BESIDE, read_once
from attention_jax.data.config import Corpus, SubwordsConfig
from attention_jax.data.own_tables import OwnTables
from attention_jax.data.seen_texts import SeenTextConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(OwnTables, SeenTextConfig):
    """Images in a folder, and tables of the texts beside them; see `data.caption_tables`.

    Further fields are those of `data.own_tables.OwnTables` and `data.seen_texts.SeenTextConfig`.

    Attributes:
      folder: Where the images are that tables name; that of each table if empty.
      subwords: How texts become tokens.
    """

    name: str = setting("seen_texts", choices=("seen_texts",))
    folder: str = setting("", is_file=True)
    subwords: SubwordsConfig = setting(SubwordsConfig())

    def __post_init__(self) -> None:
        """Checks the tables, and the height."""
        OwnTables.__post_init__(self)
        SeenTextConfig.__post_init__(self)

    def with_pictures(self) -> Corpus:
        """Reads the tables, and the images that they name.

        Raises:
          DataError: Naming the line or the file that is at fault.
        """
        named = self.read(lambda table: read_seen_texts(table, self._folder_of(table)))
        return {split: self._seen(examples) for split, examples in named.items()}

    def _folder_of(self, table: str) -> Path:
        return Path(self.folder) if self.folder else Path(table).parent

    def _seen(self, examples: list[ManySided]) -> list[tuple]:
        paths = [example.further[BESIDE.name] for example in examples]
        pictures = read_once(paths, self.read_file)
        return [
            (example.source, example.references, {BESIDE.name: cells})
            for example, cells in zip(examples, pictures, strict=True)
        ]
