"""SIGMORPHON 2021, task 1: how words of five languages are pronounced."""

import dataclasses
from pathlib import Path

import tensorflow_datasets as tfds

from attention_jax.data import storage
from attention_jax.data.builders.blocks import block_features, to_blocks
from attention_jax.data.pronunciation import read_pronunciations

TRACKS = {"fre": "medium", "kor": "medium", "hun": "medium", "ice": "low", "eng_us": "high"}
COMMIT = "821bcdece5a47820872215969f275004b0abe80c"
ADDRESS = "https://raw.githubusercontent.com/sigmorphon/2021-task1/{commit}/data/{track}/{name}"
_FILES = {"train": "train", "validation": "dev", "test": "test"}


@dataclasses.dataclass
class Language(tfds.core.BuilderConfig):
    """The language of a builder, which is its name."""


class Builder(tfds.core.GeneratorBasedBuilder):
    """Words and how they are pronounced, each in one way."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": f"The files of commit {COMMIT[:8]}."}
    BUILDER_CONFIGS = [Language(name=language) for language in TRACKS]

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            features=block_features(),
            homepage="https://github.com/sigmorphon/2021-task1",
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        language = self.builder_config.name
        return {
            name: self._generate_examples(f"{language}_{part}.tsv")
            for name, part in _FILES.items()
        }

    def _generate_examples(self, name):
        yield from to_blocks(read_pronunciations(obtain_file(name)))


def obtain_file(name: str) -> Path:
    """Returns a verified file of the task, `hun_dev.tsv` for one."""
    track = TRACKS[name.rpartition("_")[0]]
    url = ADDRESS.format(commit=COMMIT, track=track, name=name)
    digest = storage.recorded_digests(__file__)[name]
    return storage.obtain(f"sigmorphon2021_g2p/{name}", url, digest)
