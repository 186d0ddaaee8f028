"""CoNLL-SIGMORPHON 2017, task 1: inflected forms of words in five languages."""

import dataclasses
import itertools
from pathlib import Path

import tensorflow_datasets as tfds

from attention_jax.data import storage
from attention_jax.data.builders.blocks import block_features, to_blocks
from attention_jax.data.inflection import read_inflections

LANGUAGES = ("turkish", "german", "finnish", "spanish", "russian")
SETTINGS = ("low", "medium", "high")
COMMIT = "519bb1677a7c747b3863d37069ffd395062288d8"
ADDRESS = "https://raw.githubusercontent.com/sigmorphon/conll2017/{commit}/{folder}/task1/{name}"


@dataclasses.dataclass
class LanguageConfig(tfds.core.BuilderConfig):
    """The language of a builder and how much it trains on; its name is `language-setting`."""

    language: str = "turkish"
    setting: str = "medium"


class Builder(tfds.core.GeneratorBasedBuilder):
    """Lemmas with tags, and their forms; `validation` is dev, and `test` the uncovered test set."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": f"The files of commit {COMMIT[:8]}."}
    BUILDER_CONFIGS = [
        LanguageConfig(name=f"{language}-{setting}", language=language, setting=setting)
        for language, setting in itertools.product(LANGUAGES, SETTINGS)
    ]

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            features=block_features(),
            homepage="https://sigmorphon.github.io/sharedtasks/2017",
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        language, setting = self.builder_config.language, self.builder_config.setting
        files = {"train": f"train-{setting}", "validation": "dev", "test": "uncovered-test"}
        return {
            name: self._generate_examples(f"{language}-{part}") for name, part in files.items()
        }

    def _generate_examples(self, name):
        yield from to_blocks(read_inflections(obtain_file(name)))


def obtain_file(name: str) -> Path:
    """Returns a verified file of the task, `turkish-dev` for one."""
    folder = "answers" if name.endswith("-uncovered-test") else "all"
    url = ADDRESS.format(commit=COMMIT, folder=folder, name=name)
    return storage.obtain(f"conll2017/{name}", url, storage.recorded_digests(__file__)[name])
