"""Hearthstone: cards of a game, each with the Python class that implements it."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.code import CodeConfig
from attention_jax.data.config import SubwordsConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(CodeConfig):
    """Descriptions of cards, from which classes are to be written.

    A card's name is several words of its description and one string of its class: strings are
    therefore split into words here.
    """

    name: str = setting("hearthstone", choices=("hearthstone",))
    max_source_length: int = setting(128, at_least=2)
    max_target_length: int = setting(512, at_least=2)
    subwords: SubwordsConfig = setting(SubwordsConfig(kind="words", size=1000))
