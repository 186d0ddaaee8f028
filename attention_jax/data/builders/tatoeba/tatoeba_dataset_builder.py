"""Tatoeba: 169,813 pairs of English and German sentences, many with several translations."""

import dataclasses
import zipfile
from pathlib import Path

import tensorflow_datasets as tfds

from attention_jax.data import storage
from attention_jax.data.builders.blocks import block_features, grouped, to_blocks
from attention_jax.data.builders.splitting import split_of
from attention_jax.errors import DataError

LANGUAGES = ("en", "de")
ARCHIVE = "deu-eng.zip"
ADDRESS = (
    "https://raw.githubusercontent.com/rioyshky/translation/"
    "de48b7027f7318d77010a6e08ed928c10748c23d/deu-eng.zip"
)
VALIDATION_FRACTION = 0.02
TEST_FRACTION = 0.02


@dataclasses.dataclass
class Direction(tfds.core.BuilderConfig):
    """Which of the two languages is the source; the name is `source-target`.

    Attributes:
      source_language: The one.
      lowercase: Whether sentences are put in lower case, before they are split and gathered; the
        name then ends in `-lowercase`.
    """

    source_language: str = "en"
    lowercase: bool = False


class Builder(tfds.core.GeneratorBasedBuilder):
    """Sentences and all of their translations, split by distinct English sentence."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "The pairs of 2018-05-13."}
    BUILDER_CONFIGS = [
        Direction(name=name + suffix, source_language=name[:2], lowercase=bool(suffix))
        for suffix in ("", "-lowercase")
        for name in ("en-de", "de-en")
    ]

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            features=block_features(),
            homepage="https://www.manythings.org/anki/",
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        digest = storage.recorded_digests(__file__)[ARCHIVE]
        pairs = read_pairs(storage.obtain(f"tatoeba_deu/{ARCHIVE}", ADDRESS, digest))
        if self.builder_config.lowercase:
            pairs = [(english.lower(), german.lower()) for english, german in pairs]
        splits = split_pairs(pairs)
        return {name: self._generate_examples(pairs) for name, pairs in splits.items()}

    def _generate_examples(self, pairs):
        if self.builder_config.source_language == "de":
            pairs = [(german, english) for english, german in pairs]
        yield from to_blocks(grouped(pairs))


def read_pairs(archive: Path) -> list[tuple[str, str]]:
    """Reads the (English, German) pairs of the archive.

    Raises:
      DataError: If the archive has no `deu.txt`, or a line of that is no pair.
    """
    try:
        text = zipfile.ZipFile(archive).read("deu.txt").decode("utf-8")
    except (zipfile.BadZipFile, KeyError) as error:
        raise DataError(f"{archive}: expected an archive with deu.txt ({error})") from None
    pairs = []
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        columns = line.split("\t")  # English, German, and in later versions an attribution
        if len(columns) < 2:
            raise DataError(f"{archive}:deu.txt:{number}: expected two columns, found one")
        pairs.append((columns[0].strip(), columns[1].strip()))
    return pairs


def split_pairs(pairs: list[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Splits pairs by a hash of the English sentence; no sentence of either language is in two.

    A German sentence may translate English sentences of several splits. It stays in `test`, or else
    in `validation`, and its other pairs are dropped (about 0.7 % of all).
    """
    splits: dict[str, list[tuple[str, str]]] = {"test": [], "validation": [], "train": []}
    for pair in pairs:
        name = split_of(pair[0], validation=VALIDATION_FRACTION, test=TEST_FRACTION)
        splits[name].append(pair)
    taken: set[str] = set()
    # In the order test, validation, train: earlier splits keep their German sentences.
    for name, members in splits.items():
        splits[name] = [pair for pair in members if pair[1] not in taken]
        taken.update(german for _, german in splits[name])
    return {name: splits[name] for name in ("train", "validation", "test")}
