"""Multi30k: image captions in English, German, French and Czech."""

import dataclasses
from typing import Any

from attention_jax.configuration import setting
from attention_jax.data.config import check_languages
from attention_jax.data.further_sources import SeveralSourcesConfig

_LANGUAGES = ("en", "de", "fr", "cs")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(SeveralSourcesConfig):
    """Image captions, any two of four languages, or more.

    Further fields are those of `data.further_sources.SeveralSourcesConfig`.

    Attributes:
      source_language: Code of the language to translate from.
      target_language: Code of the language to translate into.
      further_languages: Codes of languages that are translated from as well. Each is a source of
        that name for the model, `model.sources.fr`.
      casing: The captions as they were written (`cased`), or the corpus's own form of them in lower
        case, normalised and split into tokens (`lowercased`), in which most papers give their BLEU,
        with `bleu_tokenizer=none`. It is another scale than that of `cased`.
    """

    name: str = setting("multi30k", choices=("multi30k",))
    source_language: str = setting("en", choices=_LANGUAGES)
    target_language: str = setting("de", choices=_LANGUAGES)
    further_languages: tuple[str, ...] = setting(())
    casing: str = setting("cased", choices=("cased", "lowercased"))

    def __post_init__(self):
        super().__post_init__()
        check_languages(self.source_language, self.target_language)
        taken = [self.source_language, self.target_language]
        for language in self.further_languages:
            if language not in _LANGUAGES or language in taken:
                others = [name for name in _LANGUAGES if name not in taken]
                raise ValueError(
                    f"further_languages: expected some of {', '.join(others)}, each once, found "
                    f"{language!r}"
                )
            taken.append(language)
        self.check_further_sources()
        if self.casing == "lowercased" and self.bleu_tokenizer != "none":
            raise ValueError(
                "bleu_tokenizer: expected 'none' with casing 'lowercased', whose text is split "
                f"into tokens already, found {self.bleu_tokenizer!r}"
            )

    @property
    def further_sources(self) -> tuple[str, ...]:
        return self.further_languages

    def builder_config(self) -> Any:
        if not self.further_languages and self.casing == "cased":
            return f"{self.source_language}-{self.target_language}"
        return self.builder.languages(
            self.source_language, self.target_language, self.further_languages, self.casing
        )
