"""texts: the user's own running text, to be continued."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.builders.blocks import Example
from attention_jax.data.config import Corpus
from attention_jax.data.own_tables import OwnTables
from attention_jax.data.running_text import RunningTextConfig, read_text, without_sources


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(OwnTables, RunningTextConfig):
    """Text files, one sentence a line, whose words spaces separate.

    Further fields are those of `data.own_tables.OwnTables`, whose tables are text files here, and
    of `data.running_text.RunningTextConfig`.
    """

    name: str = setting("texts", choices=("texts",))

    def load(self) -> Corpus:
        splits = self.read(self._keyed_texts)
        return without_sources(
            {name: [example.source for example in split] for name, split in splits.items()}
        )

    def _keyed_texts(self, path: str) -> list[Example]:
        # By itself a text is held out, or it is not: two that are alike are never in two splits.
        return [Example(text, (text,)) for text in self.texts(read_text(path))]
