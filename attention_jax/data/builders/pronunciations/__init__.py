"""pronunciations: the user's own words and their phonemes."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.config import Corpus
from attention_jax.data.own_tables import OwnTables
from attention_jax.data.pronunciation import PronunciationConfig, read_pronunciations


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(OwnTables, PronunciationConfig):
    """Pronunciations in tables of `word<TAB>PHONEME PHONEME` lines.

    Further fields are those of `data.own_tables.OwnTables` and
    `data.pronunciation.PronunciationConfig`.
    """

    name: str = setting("pronunciations", choices=("pronunciations",))

    def load(self) -> Corpus:
        return self.read(read_pronunciations)
