"""CMUdict: how English words are pronounced."""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.pronunciation import PronunciationConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(PronunciationConfig):
    """English words to phonemes."""

    name: str = setting("cmudict", choices=("cmudict",))
    has_lowercase_sources: ClassVar[bool] = True
