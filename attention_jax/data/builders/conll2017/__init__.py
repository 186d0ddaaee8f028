"""CoNLL-SIGMORPHON 2017: inflected forms of words in five languages."""

import dataclasses

from attention_jax import configuration
from attention_jax.data.inflection import InflectionConfig

_LANGUAGES = ("turkish", "german", "finnish", "spanish", "russian")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(InflectionConfig):
    """Lemmas and tags to inflected forms, task 1 of 2017.

    Attributes:
      language: Which one.
      setting: How many training pairs: `low` (100), `medium` (1,000) or `high` (10,000).
    """

    name: str = configuration.setting("conll2017", choices=("conll2017",))
    language: str = configuration.setting("turkish", choices=_LANGUAGES)
    setting: str = configuration.setting("medium", choices=("low", "medium", "high"))

    def builder_config(self) -> str:
        return f"{self.language}-{self.setting}"
