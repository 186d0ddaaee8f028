"""Multi30k: image captions in English, German, French and Czech."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.config import TranslationConfig, check_languages

_LANGUAGES = ("en", "de", "fr", "cs")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(TranslationConfig):
    """Image captions, any two of four languages.

    Attributes:
      source_language: Code of the language to translate from.
      target_language: Code of the language to translate into.
    """

    name: str = setting("multi30k", choices=("multi30k",))
    source_language: str = setting("en", choices=_LANGUAGES)
    target_language: str = setting("de", choices=_LANGUAGES)

    def __post_init__(self):
        super().__post_init__()
        check_languages(self.source_language, self.target_language)

    def builder_config(self) -> str:
        return f"{self.source_language}-{self.target_language}"
