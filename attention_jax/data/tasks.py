"""Tasks: a data set with its texts, its vocabularies and its splits as ids."""

import dataclasses
import functools
import hashlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self, SupportsIndex

import numpy as np

from attention_jax.data.batch_plan import permutation
from attention_jax.data.config import (
    CmudictConfig,
    DataConfig,
    SubwordsConfig,
    TranslationConfig,
    data_config_class,
)
from attention_jax.data.corpora import load_corpus
from attention_jax.data.text.storage import (
    has_vocabularies,
    load_vocabularies,
    load_vocabulary,
    save_vocabularies,
)
from attention_jax.data.text.subwords import SubwordVocabulary
from attention_jax.data.text.vocabulary import SymbolVocabulary, Vocabulary
from attention_jax.errors import DataError
from attention_jax.spaced_words import spaced_words, strip_spaces
from attention_jax.types import SpecialIds

__all__ = [
    "PRONUNCIATION",
    "TRANSLATION",
    "Split",
    "Task",
    "build_task",
    "data_config_class",
    "load_vocabularies",
    "load_vocabulary",
    "prepare_text",
    "sources_only",
]

PRONUNCIATION, TRANSLATION = "pronunciation", "translation"
_SAMPLE_KEY = 20_160_101


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """Parallel lists of texts.

    Attributes:
      sources: Source texts.
      targets: Target texts.
      references: Every accepted output of each source.
      numbers: Where each stood in the whole data set.
    """

    sources: list[str]
    targets: list[str]
    references: list[list[str]]
    numbers: list[int]

    def __len__(self) -> int:
        return len(self.sources)

    def content(self) -> bytes:
        """Returns all texts in order, to tell them from others."""
        columns = (self.sources, self.targets, map("\t".join, self.references))
        return f"{len(self)}\0".encode() + "".join(map("\n".join, columns)).encode()

    def select(self, indices: Iterable[SupportsIndex]) -> Self:
        """Returns the same with these examples only."""
        indices = list(map(int, indices))
        return dataclasses.replace(
            self,
            sources=[self.sources[index] for index in indices],
            targets=[self.targets[index] for index in indices],
            references=[self.references[index] for index in indices],
            numbers=[self.numbers[index] for index in indices],
        )

    def sample(self, size: int) -> Self:
        """Returns a fixed random sample, in the same order; everything if that is no larger.

        Smaller samples are contained in larger ones.
        """
        if size >= len(self):
            return self
        return self.select(np.sort(permutation(len(self), _SAMPLE_KEY)[:size]))


@dataclasses.dataclass(frozen=True, eq=False)
class Split(Texts):
    """Examples as texts and as ids.

    In training every accepted output of a source is an example; in the other splits every source
    is one, whose target is the first of its references.

    Attributes:
      name: `train`, `validation` or `test`.
      source_vocabulary: Turns sources into ids.
      target_vocabulary: Turns targets into ids.
      bleu_tokenizer: How BLEU splits outputs and references into words, by sacrebleu's name.
    """

    name: str
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    bleu_tokenizer: str = "13a"

    @functools.cached_property
    def source_ids(self) -> list[np.ndarray]:
        """Source ids, int32, ending in EOS."""
        return _encoded(self.source_vocabulary, self.sources)

    @functools.cached_property
    def target_ids(self) -> list[np.ndarray]:
        """Target ids, int32, ending in EOS."""
        return _encoded(self.target_vocabulary, self.targets)

    def with_target_ids(self, ids: Sequence[np.ndarray]) -> "Split":
        """Returns the same sources with other targets, such as outputs.

        Args:
          ids: int32, ending in EOS. They are kept as they are, though encoding their texts may
            give others.
        """
        texts = [self.target_vocabulary.decode(each) for each in ids]
        changed = dataclasses.replace(self, targets=texts)
        vars(changed)["target_ids"] = list(ids)  # where a cached property keeps its value
        return changed


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """What there is to learn.

    Attributes:
      kind: `pronunciation` or `translation`; decides how outputs are scored.
      source_vocabulary: Of the source side.
      target_vocabulary: Of the target side; the same object if the vocabulary is joint.
      splits: The splits by name.
      num_training_pairs: Size of the data set's training split, of which the config may leave
        pairs out.
    """

    kind: str
    source_vocabulary: Vocabulary
    target_vocabulary: Vocabulary
    splits: Mapping[str, Split]
    num_training_pairs: int

    def split(self, name: str) -> Split:
        """Returns a split.

        Raises:
          DataError: If there is none of that name.
        """
        if name not in self.splits:
            names = ", ".join(self.splits)
            raise DataError(f"split: expected one of {names}, found {name!r}")
        return self.splits[name]

    @functools.cached_property
    def fingerprint(self) -> str:
        """A hash of every text of every split, in order."""
        digest = hashlib.sha256(self.kind.encode())
        for name, split in self.splits.items():
            digest.update(f"\0{name}\0".encode() + split.content())
        return digest.hexdigest()

    @functools.cached_property
    def fingerprints(self) -> dict[str, str]:
        """A hash of every text of each split, in order."""
        return {
            name: hashlib.sha256(split.content()).hexdigest() for name, split in self.splits.items()
        }


def build_task(data_config: DataConfig, vocab_dir: str | Path) -> Task:
    """Loads a data set, preparing it if need be, and its vocabularies.

    Args:
      data_config: One of the dataclasses of `attention_jax.data.config`.
      vocab_dir: Folder of the run's vocabularies. If it holds them they are loaded, else they are
        those that the config names, or trained on the training split, and saved there.

    Raises:
      DataError: If data or vocabularies are missing or damaged.
    """
    texts = {
        name: _texts(examples, data_config, every_reference=name == "train")
        for name, examples in load_corpus(data_config).items()
    }
    num_training_pairs = len(texts["train"])
    if data_config.max_train_examples:
        texts["train"] = texts["train"].sample(data_config.max_train_examples)
    if not has_vocabularies(vocab_dir):
        given = getattr(data_config, "vocabularies", "")
        make = _given_vocabularies if given else _train_vocabularies
        save_vocabularies(vocab_dir, *make(texts["train"], data_config))
    source, target = load_vocabularies(vocab_dir)
    texts["train"] = _of_wanted_length(texts["train"], data_config)
    splits = {
        name: Split(
            **vars(part), name=name, source_vocabulary=source, target_vocabulary=target,
            bleu_tokenizer=getattr(data_config, "bleu_tokenizer", Split.bleu_tokenizer),
        )
        for name, part in texts.items()
    }
    kind = PRONUNCIATION if isinstance(data_config, CmudictConfig) else TRANSLATION
    return Task(kind, source, target, splits, num_training_pairs)


def prepare_text(text: str, data_config: DataConfig, *, is_source: bool = True) -> str:
    """Brings a text of the user into the form of the data set's sources, or of its targets."""
    text = strip_spaces(text.strip("\r\n"))
    # Dictionary words are listed in lower case only; phonemes are not.
    if is_source and isinstance(data_config, CmudictConfig):
        return text.lower()
    return _cased(text, data_config)


def sources_only(
    sources: Sequence[str], source_vocabulary: Vocabulary, target_vocabulary: Vocabulary
) -> Split:
    """Makes a split of sources whose outputs nobody knows."""
    return Split(
        sources=list(sources),
        targets=[""] * len(sources),
        references=[[] for _ in sources],
        numbers=list(range(len(sources))),
        name="input",
        source_vocabulary=source_vocabulary,
        target_vocabulary=target_vocabulary,
    )


def _texts(examples, data_config: DataConfig, *, every_reference: bool) -> Texts:
    texts = Texts([], [], [], [])
    for source, references in examples:
        source = _cased(source, data_config)
        references = [_cased(reference, data_config) for reference in references]
        for target in references if every_reference else references[:1]:
            texts.sources.append(source)
            texts.targets.append(target)
            texts.references.append(references)
            texts.numbers.append(len(texts.numbers))
    return texts


def is_lowercase(data_config: DataConfig) -> bool:
    """Whether a data set's texts are put in lower case."""
    return getattr(data_config, "lowercase", False)


def _cased(text: str, data_config: DataConfig) -> str:
    return text.lower() if is_lowercase(data_config) else text


def _of_wanted_length(train: Texts, data_config: DataConfig) -> Texts:
    if not isinstance(data_config, TranslationConfig):
        return train
    fewest = data_config.min_train_source_words
    most = data_config.max_train_source_words or sys.maxsize
    words = [len(spaced_words(source)) for source in train.sources]
    wanted = [index for index, length in enumerate(words) if fewest <= length <= most]
    if not wanted:
        raise DataError(
            f"data: expected training sources of {fewest} to {most} words, found none "
            f"among {len(train)}"
        )
    return train.select(wanted)


def _train_vocabularies(train: Texts, data_config: DataConfig) -> tuple[Vocabulary, Vocabulary]:
    match data_config:
        case CmudictConfig():
            return (
                SymbolVocabulary.train("characters", train.sources),
                SymbolVocabulary.train("symbols", train.targets),
            )
        case TranslationConfig(subwords=SubwordsConfig(joint=True) as subwords):
            joint = _train_vocabulary([*train.sources, *train.targets], subwords)
            return joint, joint
        case TranslationConfig(subwords=subwords):
            return (
                _train_vocabulary(train.sources, subwords),
                _train_vocabulary(train.targets, subwords),
            )
    return (
        SymbolVocabulary.train("characters", train.sources),
        SymbolVocabulary.train("words", train.targets),
    )


def _given_vocabularies(
    train: Texts, data_config: TranslationConfig
) -> tuple[Vocabulary, Vocabulary]:
    """Loads the vocabularies that the config names, if they are such as it describes."""
    source, target = load_vocabularies(data_config.vocabularies)
    kind, is_joint = data_config.subwords.kind, data_config.subwords.joint
    wrong = next((each.kind for each in (source, target) if each.kind != kind), None)
    if wrong is not None:
        raise DataError(
            f"data.subwords.kind: expected {wrong!r}, of which the vocabularies in "
            f"{data_config.vocabularies} are, found {kind!r}"
        )
    if (source is target) != is_joint:
        raise DataError(
            f"data.subwords.joint: expected {source is target}, as in {data_config.vocabularies}, "
            f"found {is_joint}"
        )
    return source, target


def _train_vocabulary(texts: Sequence[str], subwords: SubwordsConfig) -> Vocabulary:
    if subwords.kind == "bpe":
        return SubwordVocabulary.train(texts, subwords.size)
    return SymbolVocabulary.train(subwords.kind, texts, subwords.size)


def _encoded(vocabulary: Vocabulary, texts: Iterable[str]) -> list[np.ndarray]:
    return [np.array([*vocabulary.encode(text), SpecialIds.EOS], np.int32) for text in texts]
