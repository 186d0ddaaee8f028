"""Smoke test data with pictures: half of a number's digits are written, the others drawn."""

import dataclasses

import numpy as np

from attention_jax.configuration import setting
from attention_jax.data.builders.smoke import half
from attention_jax.data.builders.smoke.smoke_dataset_builder import (
    SIZES,
    distinct_numbers,
    spelled,
)
from attention_jax.data.captions import BESIDE
from attention_jax.data.config import Corpus
from attention_jax.data.pictures import Picture, to_cells
from attention_jax.data.seen_texts import SeenTextConfig

_SIDE = 4


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(SeenTextConfig):
    """Numbers to be spelled out, of which every second digit is in a picture only.

    Further fields are those of `data.seen_texts.SeenTextConfig`.
    """

    name: str = setting("smoke_pictures", choices=("smoke_pictures",))
    height: int = setting(_SIDE, choices=(_SIDE,))
    cell: int = setting(_SIDE, choices=(_SIDE,))
    colours: str = setting("grey", choices=("grey",))

    @property
    def units(self) -> tuple[str, str]:  # type: ignore[override]
        """Digits are read, and words written."""
        return "characters", "words"

    def with_pictures(self) -> Corpus:
        """Makes up the numbers of smoke test data, and draws them."""
        numbers = iter(distinct_numbers(sum(SIZES.values())))
        return {
            name: [example(next(numbers)) for _ in range(size)] for name, size in SIZES.items()
        }


def example(number: str) -> tuple:
    """Returns what is written of a number, its spelling, and what is drawn of it."""
    cells = to_cells(drawn(half(number, 1)), _SIDE)
    return half(number, 0), (spelled(number),), {BESIDE.name: cells}


def drawn(number: str) -> Picture:
    """Draws digits side by side, each by its bits: a stripe a bit, black for one; a gap is grey."""
    stripes = [
        [255 * (not int(digit) >> bit & 1) if digit.isdigit() else 128 for bit in range(_SIDE)]
        for digit in number
    ]
    row = np.array(stripes, np.uint8).reshape(1, -1, 1)
    return np.repeat(row, _SIDE, axis=0)
