"""CMUdict: how English words are pronounced."""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.transduction import TransductionConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(TransductionConfig):
    """English words to phonemes."""

    name: str = setting("cmudict", choices=("cmudict",))
    task: ClassVar[str] = "pronounce"
    has_lowercase_sources: ClassVar[bool] = True
