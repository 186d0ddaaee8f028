"""Smoke test data: numbers to be read out digit by digit, learnt in seconds."""

import dataclasses
from typing import ClassVar

from attention_jax.configuration import setting
from attention_jax.data.config import Corpus
from attention_jax.data.transduction import TransductionConfig

OTHER, _MISSING = "other", "_"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(TransductionConfig):
    """Numbers to be spelled out, learnt in seconds.

    Attributes:
      halves: Whether every second digit is missing in the source, and all the others in a further
        source called `other`, so that both have to be read.
    """

    symbols: ClassVar[tuple[str, str]] = ("characters", "words")
    name: str = setting("smoke", choices=("smoke",))
    halves: bool = setting(False)

    @property
    def further_sources(self) -> tuple[str, ...]:
        return (OTHER,) if self.halves else ()

    def load(self) -> Corpus:
        splits = super().load()
        if not self.halves:
            return splits
        return {
            name: [(half(number, 0), references, {OTHER: half(number, 1)})
                   for number, references in examples]
            for name, examples in splits.items()
        }  # fmt: skip


def half(number: str, first: int) -> str:
    """Returns a number with every second digit from `first` on, `307` as `3_7` or `_0_`."""
    return "".join(
        digit if place % 2 == first else _MISSING for place, digit in enumerate(number)
    )
