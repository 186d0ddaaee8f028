"""Tatoeba: short sentences in English and German, many with several translations."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.config import TranslationConfig, check_languages

_LANGUAGES = ("en", "de")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(TranslationConfig):
    """Short everyday sentences in English and German, in either direction.

    Attributes:
      source_language: Code of the language to translate from.
      target_language: Code of the language to translate into.
    """

    name: str = setting("tatoeba", choices=("tatoeba",))
    source_language: str = setting("en", choices=_LANGUAGES)
    target_language: str = setting("de", choices=_LANGUAGES)

    def __post_init__(self):
        super().__post_init__()
        check_languages(self.source_language, self.target_language)

    def builder_config(self) -> str:
        languages = f"{self.source_language}-{self.target_language}"
        return f"{languages}-lowercase" if self.lowercase else languages
