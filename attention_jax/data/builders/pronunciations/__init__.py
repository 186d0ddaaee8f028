"""pronunciations: the user's own words and their phonemes."""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.config import Corpus
from attention_jax.data.own_tables import OwnTables
from attention_jax.data.pronunciation import read_pronunciations
from attention_jax.data.transduction import TransductionConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(OwnTables, TransductionConfig):
    """Pronunciations in tables of `word<TAB>PHONEME PHONEME` lines.

    Further fields are those of `data.own_tables.OwnTables` and
    `data.transduction.TransductionConfig`.
    """

    task: ClassVar[str] = "pronounce"
    name: str = setting("pronunciations", choices=("pronunciations",))

    def load(self) -> Corpus:
        return self.read(read_pronunciations)
