"""ERASER movie reviews: whether a review is favourable, and which words people say tell that.

Zaidan, Eisner and Piatko (2007) had the evidence marked; DeYoung et al. (2020), "ERASER: A
benchmark to evaluate rationalized NLP models", published it in the form that is read here. There is
no public address from which these very files could be fetched: they are taken from the directory
that `ATTENTION_JAX_DATA` names.
"""

import dataclasses
import gzip
import json
import tarfile
from pathlib import Path
from typing import Any, ClassVar

from attention_jax.configuration import setting
from attention_jax.data import storage
from attention_jax.data.config import Corpus
from attention_jax.data.documents import DocumentConfig, document_of
from attention_jax.errors import DataError

FOLDER = "eraser_movies"
DOCUMENTS = "docs.tar.gz"
ANNOTATIONS = {
    "train": "train.jsonl.gz", "validation": "val.jsonl.gz", "test": "test.jsonl.gz"
}  # fmt: skip
DIGESTS = {
    "docs.tar.gz": "7bd52bc82398393140ce086c06ea632e36fbab7efa060a1fdd30b083e8a5a247",
    "train.jsonl.gz": "3ce6e90b38f7f0f717a814c1020a8af98f71abc99ba897911841b7c098f180be",
    "val.jsonl.gz": "747db613802af607c915212494a4a28ecaa3d406b600b3080353637aaa837260",
    "test.jsonl.gz": "c5be87e9c015d1aee61ca4d10c238f843d4cad5b26c989f80b177f247417aaf1",
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Config(DocumentConfig):
    """Movie reviews in lower case, tokens apart, each labelled neg or pos."""

    name: str = setting("eraser_movies", choices=("eraser_movies",))
    lowercase: ClassVar[bool] = True

    def load(self) -> Corpus:
        """Returns the reviews of every split, with the evidence as spans of their words."""
        with tarfile.open(obtain_file(DOCUMENTS)) as archive:
            texts = {
                Path(member.name).name: archive.extractfile(member).read().decode()
                for member in archive.getmembers()
                if member.isfile()
            }
        return {
            split: [_example(row, texts, self.max_sentence_words) for row in _rows(name)]
            for split, name in ANNOTATIONS.items()
        }


def obtain_file(name: str) -> Path:
    """Returns a verified file of the data set.

    Raises:
      DataError: If it is not there, or is another one.
    """
    root = storage.data_root()
    path = None if root is None else root / FOLDER / name
    if path is None or not path.is_file():
        raise DataError(
            f"ATTENTION_JAX_DATA: expected a directory with {FOLDER}/{name}, found "
            f"{'no such file in it' if root else 'none named'}"
        )
    storage.check_digest(path, DIGESTS[name])
    return path


def _rows(name: str) -> list[dict[str, Any]]:
    text = gzip.decompress(obtain_file(name).read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


def _example(
    row: dict[str, Any], texts: dict[str, str], longest: int
) -> tuple[str, tuple[str], dict[str, Any]]:
    """Makes an example: the text, the label, and the evidence as sorted spans of words.

    Some twenty annotations of the files are of no word: the benchmark counts them as spans that no
    selection finds.
    """
    marked = [each for group in row["evidences"] for each in group]
    spans = sorted({(each["start_token"], each["end_token"]) for each in marked})
    sentences = texts[row["annotation_id"]].split("\n")
    return document_of(sentences, longest), (row["classification"],), {"evidence": tuple(spans)}
