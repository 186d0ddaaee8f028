"""Django: lines of Python, each with what it does in English."""

import dataclasses

from attention_jax.configuration import setting
from attention_jax.data.code import CodeConfig


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(CodeConfig):
    """Descriptions of single lines of Python, from which the lines are to be written."""

    name: str = setting("django", choices=("django",))
