"""Smoke test data: numbers to be read out digit by digit, learnt in seconds."""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.transduction import TransductionConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(TransductionConfig):
    """Numbers to be spelled out, learnt in seconds."""

    symbols: ClassVar[tuple[str, str]] = ("characters", "words")
    name: str = setting("smoke", choices=("smoke",))
