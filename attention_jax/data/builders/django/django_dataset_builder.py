"""Django: 18,805 lines of Python with their description in English, one of each a line."""

import tensorflow_datasets as tfds

from attention_jax.data import storage
from attention_jax.data.builders.blocks import Example, block_features, to_blocks
from attention_jax.data.code import check_lengths, obtain_lines
from attention_jax.data.text.code import spaced_code
from attention_jax.spaced_words import spaced_words

COMMIT = "c37fa281ced0de16aa7868415522905f8380686e"
ADDRESS = "https://raw.githubusercontent.com/odashi/ase15-django-dataset/{commit}/django/{name}"
DESCRIPTIONS, PROGRAMS = "all.anno", "all.code"
# In the order of the files, as all papers since Ling et al. (2016) have it.
SIZES = {"train": 16_000, "validation": 1_000, "test": 1_805}


class Builder(tfds.core.GeneratorBasedBuilder):
    """Descriptions and lines of code, the words of either with single spaces between them."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": f"The files of commit {COMMIT[:8]}."}

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(
            features=block_features(),
            homepage="https://github.com/odashi/ase15-django-dataset",
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        examples, first = read_examples(), 0
        splits = {}
        for name, size in SIZES.items():
            splits[name] = self._generate_examples(examples[first : first + size])
            first += size
        return splits

    def _generate_examples(self, examples):
        yield from to_blocks(examples)


def read_examples() -> list[Example]:
    """Returns all examples in order.

    Raises:
      DataError: If a file cannot be obtained, or is another one.
    """
    descriptions, programs = (_lines(name) for name in (DESCRIPTIONS, PROGRAMS))
    check_lengths("django", descriptions, programs)
    # Indentation is left out: a line by itself does not tell how deep it stands.
    return [
        Example(" ".join(spaced_words(description)), (spaced_code(program),))
        for description, program in zip(descriptions, programs, strict=True)
    ]


def _lines(name: str) -> list[str]:
    address = ADDRESS.format(commit=COMMIT, name=name)
    digest = storage.recorded_digests(__file__)[name]
    return obtain_lines(f"django_code/{name}", address, digest)
