"""Multi30k task 1: image captions in English, German, French and Czech."""

import dataclasses
import itertools
from pathlib import Path

import tensorflow_datasets as tfds

from attention_jax.data import storage
from attention_jax.data.builders.blocks import Example, ManySided, block_features, to_blocks
from attention_jax.data.lines import read_columns

LANGUAGES = ("en", "de", "fr", "cs")
COMMIT = "a3d2e0d26b56f3846f66a952536ffed4e401d05a"
ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset/{commit}/data/task1/{folder}/{name}"
_FILES = {"train": "train", "validation": "val", "test": "test_2016_flickr"}
_FILES_OF = {"cased": "{stem}.{language}.gz", "lowercased": "{stem}.lc.norm.tok.{language}"}
# For these files there are only the MD5 digests that torchtext has published. Those that it has for
# the English and German files are right for the files of this commit as well.
_MD5 = {
    "train.fr.gz": "6cb767741dcad3931f966fefbc05203f",
    "val.fr.gz": "93fc564584b7e5ba410c761ea5a1c682",
    "test_2016_flickr.fr.gz": "08dc7cd4a662f31718412de95ca9bfe3",
    "train.cs.gz": "d9a5fc268917725a2b0efce3a0cc8607",
    "val.cs.gz": "83cdc082f646b769095615384cf5c0ca",
    "test_2016_flickr.cs.gz": "3104872229daa1bef3b401d44dd2220b",
}


@dataclasses.dataclass
class LanguagePair(tfds.core.BuilderConfig):
    """The languages of a builder, and their casing.

    Its name is `source-target`, or `source_further-target`, with `-lowercased` behind it if so.
    """

    source_language: str = "en"
    target_language: str = "de"
    further_languages: tuple[str, ...] = ()
    casing: str = "cased"


def languages(
    source: str, target: str, further: tuple[str, ...] = (), casing: str = "cased"
) -> LanguagePair:
    """Returns the builder config of some languages, those in `further` as further sources."""
    name = f"{'_'.join((source, *further))}-{target}"
    return LanguagePair(
        name=name if casing == "cased" else f"{name}-{casing}", source_language=source,
        target_language=target, further_languages=further, casing=casing,
    )  # fmt: skip


class Builder(tfds.core.GeneratorBasedBuilder):
    """Captions and their translations; `test` is the 2016 Flickr test set."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": f"The files of commit {COMMIT[:8]}."}
    BUILDER_CONFIGS = [
        languages(source, target) for source, target in itertools.permutations(LANGUAGES, 2)
    ]

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            features=block_features(self.builder_config.further_languages),
            homepage="https://github.com/multi30k/dataset",
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        return {name: self._generate_examples(stem) for name, stem in _FILES.items()}

    def _generate_examples(self, stem):
        config = self.builder_config
        codes = config.source_language, config.target_language, *config.further_languages
        rows = read_columns(*(obtain_file(file_name(stem, code, config.casing)) for code in codes))
        if not config.further_languages:
            yield from to_blocks(Example(source, (target,)) for source, target in rows)
            return
        yield from to_blocks(
            ManySided(source, (target,), dict(zip(config.further_languages, others, strict=True)))
            for source, target, *others in rows
        )


def file_name(stem: str, language: str, casing: str) -> str:
    """Returns the name of a file of the corpus, such as `train.de.gz` or `train.lc.norm.tok.de`."""
    return _FILES_OF[casing].format(stem=stem, language=language)


def obtain_file(name: str) -> Path:
    """Returns a verified file of the corpus; one of `tok` may lie packed in one's folder."""
    digests = storage.recorded_digests(__file__) | _MD5
    folder = "tok" if ".tok." in name else "raw"
    url = ADDRESS.format(commit=COMMIT, folder=folder, name=name)
    return storage.obtain(f"multi30k/{folder}/{name}", url, digests[name])
