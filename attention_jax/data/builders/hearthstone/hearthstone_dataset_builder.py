"""Hearthstone: 665 cards of a game with the Python classes that implement them."""

import tensorflow_datasets as tfds

from attention_jax.data import storage
from attention_jax.data.builders.blocks import Example, block_features, to_blocks
from attention_jax.data.code import check_lengths, obtain_lines
from attention_jax.spaced_words import spaced_words

COMMIT = "2a38b6192f154c23a6f0f474822f421ea9ab7b51"
ADDRESS = (
    "https://raw.githubusercontent.com/deepmind/card2code/{commit}/third_party/hearthstone/{name}"
)
SPLITS = {"train": "train_hs", "validation": "dev_hs", "test": "test_hs"}  # 533, 66 and 66


class Builder(tfds.core.GeneratorBasedBuilder):
    """Cards and classes; the sign `\u00a7` stands for the end of a line of a class."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": f"The files of commit {COMMIT[:8]}."}

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            features=block_features(),
            homepage="https://github.com/deepmind/card2code",
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        return {name: self._generate_examples(file) for name, file in SPLITS.items()}

    def _generate_examples(self, file):
        yield from to_blocks(read_examples(file))


def read_examples(file: str) -> list[Example]:
    """Returns the examples of a pair of files, `train_hs` for one.

    Raises:
      DataError: If a file cannot be obtained, or is another one.
    """
    cards, classes = (_lines(f"{file}.{side}") for side in ("in", "out"))
    check_lengths(file, cards, classes)
    # With single spaces: how deep a line stands follows from the lines before it.
    return [
        Example(_one_spaced(card), (_one_spaced(program),))
        for card, program in zip(cards, classes, strict=True)
    ]


def _one_spaced(text: str) -> str:
    return " ".join(spaced_words(text))


def _lines(name: str) -> list[str]:
    address = ADDRESS.format(commit=COMMIT, name=name)
    digest = storage.recorded_digests(__file__)[name]
    return obtain_lines(f"hearthstone_code/{name}", address, digest)
