"""CMUdict: how English words are pronounced."""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.config import DataConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(DataConfig):
    """English words to phonemes."""

    name: str = setting("cmudict", choices=("cmudict",))
    task: ClassVar[str] = "pronounce"
    units: ClassVar[tuple[str, str]] = ("characters", "symbols")
