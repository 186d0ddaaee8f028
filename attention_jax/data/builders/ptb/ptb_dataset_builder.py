"""Penn Treebank text in Mikolov's preparation, from the folder of files that the user has."""

import gzip
import hashlib
from pathlib import Path

import tensorflow_datasets as tfds

from attention_jax.data import storage
from attention_jax.data.builders.blocks import Example, block_features, to_blocks
from attention_jax.data.running_text import read_text
from attention_jax.errors import DataError

FILES = {"train": "ptb.train.txt", "validation": "ptb.valid.txt", "test": "ptb.test.txt"}


class Builder(tfds.core.GeneratorBasedBuilder):
    """The lines of the text, in order."""

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "The files that Mikolov prepared."}

    def _info(self) -> tfds.core.DatasetInfo:
        return self.dataset_info_from_configs(features=block_features(), disable_shuffling=True)

    def _split_generators(self, dl_manager):
        return {name: self._generate_examples(file) for name, file in FILES.items()}

    def _generate_examples(self, name):
        yield from to_blocks(Example("", (line,)) for line in read_text(obtain_file(name)))


def obtain_file(name: str) -> Path:
    """Returns a verified file of the text, as it is or compressed.

    It is not downloaded, for its publisher states no licence.

    Raises:
      DataError: If it is not there, or is another.
    """
    root = storage.data_root()
    places = [] if root is None else [root / "ptb" / name, root / "ptb" / f"{name}.gz"]
    path = next((place for place in places if place.is_file()), None)
    if path is None:
        raise DataError(
            f"ptb: expected the Penn Treebank text at $ATTENTION_JAX_DATA/ptb/{name}, or as "
            f"{name}.gz, found none; it is not downloaded"
        )
    digest = storage.recorded_digests(__file__)[name]
    # The digest is the text's, however it was compressed.
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: expected a readable file ({error})") from None
    if (found := hashlib.sha256(content).hexdigest()) != digest:
        raise DataError(f"{path}: expected text of sha256 {digest}, found {found}")
    return path
