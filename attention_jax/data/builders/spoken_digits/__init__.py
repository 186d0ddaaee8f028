"""Spoken digits: strings of one to six, composed of the recordings of the FSDD."""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.builders.spoken_digits.archive import SPEAKERS
from attention_jax.data.config import Corpus
from attention_jax.data.transcription import TranscriptionConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(TranscriptionConfig):
    """Strings of spoken digits.

    Further fields are those of `data.transcription.TranscriptionConfig`.

    Attributes:
      held_out_speaker: Who is in no split but `new_speaker`, which has nobody else.
      train_strings: How many strings to train on.
      other_strings: How many there are of each other split.
    """

    name: str = setting("spoken_digits", choices=("spoken_digits",))
    sample_rate: ClassVar[int] = 8000
    brings_links: ClassVar[bool] = True
    further_splits: ClassVar[tuple[str, ...]] = ("new_speaker",)
    held_out_speaker: str = setting("theo", choices=SPEAKERS)
    train_strings: int = setting(6000, at_least=1)
    other_strings: int = setting(300, at_least=1)

    def load(self) -> Corpus:
        # Imported here: the names of data sets are found without what reads sound.
        from attention_jax.data.builders.spoken_digits.strings import compose

        return compose(self.held_out_speaker, self.train_strings, self.other_strings)
