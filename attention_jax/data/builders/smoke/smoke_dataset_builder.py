"""TFDS builder of smoke test data: numbers read out digit by digit, learnt in seconds."""

import random

import tensorflow_datasets as tfds

from attention_jax.data.builders.blocks import Example, block_features, to_blocks

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
MAX_DIGITS = 8
SIZES = {"train": 2048, "validation": 128, "test": 128}


class Builder(tfds.core.GeneratorBasedBuilder):
    """Digit strings and their spelling; no string is in two splits."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "Numbers of two to eight digits."}

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(features=block_features(), disable_shuffling=True)

    def _split_generators(self, dl_manager):
        numbers = iter(distinct_numbers(sum(SIZES.values())))
        return {
            name: self._generate_examples([next(numbers) for _ in range(size)])
            for name, size in SIZES.items()
        }

    def _generate_examples(self, numbers):
        yield from to_blocks(Example(number, (spelled(number),)) for number in numbers)


def distinct_numbers(count: int) -> list[str]:
    """Returns `count` different digit strings, the same on every call."""
    generator = random.Random(0)
    numbers: dict[str, None] = {}  # a set that keeps its order
    while len(numbers) < count:
        length = generator.randint(2, MAX_DIGITS)
        numbers["".join(str(generator.randrange(10)) for _ in range(length))] = None
    return list(numbers)


def spelled(number: str) -> str:
    """Spells a digit string: `307` becomes `three zero seven`."""
    return " ".join(DIGITS[int(digit)] for digit in number)
