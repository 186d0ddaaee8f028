"""Smoke test data: numbers to be read out digit by digit, learnt in seconds."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.config import DataConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(DataConfig):
    """Numbers to be spelled out, learnt in seconds."""

    name: str = setting("smoke", choices=("smoke",))
