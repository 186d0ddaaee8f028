"""documents: the user's own texts and their labels."""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.config import Corpus
from attention_jax.data.documents import DocumentConfig, check_labels, read_documents
from attention_jax.data.own_tables import OwnTables


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(OwnTables, DocumentConfig):
    """Documents in tables of `label<TAB>text` lines.

    Further fields are those of `data.own_tables.OwnTables` and `data.documents.DocumentConfig`.

    Attributes:
      separator: What separates the sentences of a text, such as `|||`; if empty, a sentence ends
        with a full stop, an exclamation mark or a question mark before a space.
      lowercase: Whether words and labels are put in lower case.
    """

    word_kind: ClassVar[str] = "words"
    name: str = setting("documents", choices=("documents",))
    separator: str = setting("")
    lowercase: bool = setting(False)

    def load(self) -> Corpus:
        """Returns the documents of every split."""
        splits = self.read(lambda path: read_documents(path, self))
        check_labels(splits, {name: self.files(name)[0] or self.train_table for name in splits})
        return splits
