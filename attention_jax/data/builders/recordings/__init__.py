"""recordings: the user's own sound files and what is said in them."""

import dataclasses
import functools

from attention_jax.configuration import setting
from attention_jax.data.config import Corpus
from attention_jax.data.own_tables import OwnTables
from attention_jax.data.transcription import TranscriptionConfig, read_transcripts


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(OwnTables, TranscriptionConfig):
    """Recordings in tables of `file<TAB>text` lines, whose paths begin in the table's folder.

    Further fields are those of `data.own_tables.OwnTables` and
    `data.transcription.TranscriptionConfig`.

    Attributes:
      sample_rate: At which recordings are read, in Hz; those of other rates are resampled.
    """

    name: str = setting("recordings", choices=("recordings",))
    sample_rate: int = setting(16_000, at_least=1000)

    def load(self) -> Corpus:
        return self.read(functools.partial(read_transcripts, rate=self.sample_rate))
