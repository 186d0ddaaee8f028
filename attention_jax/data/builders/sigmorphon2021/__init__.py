"""SIGMORPHON 2021, task 1: how words of five languages are pronounced."""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.pronunciation import PronunciationConfig

_LANGUAGES = ("fre", "kor", "hun", "ice", "eng_us")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(PronunciationConfig):
    """Words to phonemes of the International Phonetic Alphabet.

    Attributes:
      language: French, Korean, Hungarian, Icelandic or English as in the United States.
    """

    has_lowercase_sources: ClassVar[bool] = True
    name: str = setting("sigmorphon2021", choices=("sigmorphon2021",))
    language: str = setting("hun", choices=_LANGUAGES)

    def builder_config(self) -> str:
        return self.language
