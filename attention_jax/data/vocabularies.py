"""The vocabularies of a run: trained on its training split, or those that its config names."""

from collections.abc import Sequence
from pathlib import Path

from attention_jax.data.config import DataConfig, SubwordsConfig
from attention_jax.data.examples import Texts
from attention_jax.data.text.storage import (
    has_vocabularies,
    load_vocabularies,
    save_vocabularies,
)
from attention_jax.data.text.subwords import SubwordVocabulary
from attention_jax.data.text.vocabulary import SymbolVocabulary, Vocabulary
from attention_jax.errors import DataError

Pair = tuple[Vocabulary, Vocabulary]


def obtain_vocabularies(train: Texts, data_config: DataConfig, directory: str | Path) -> Pair:
    """Returns the source and target vocabularies of a run, the same object where they are joint.

    Args:
      train: The training texts.
      data_config: What tokens are.
      directory: The run's: if it holds vocabularies they are loaded, else saved there.

    Raises:
      DataError: If vocabularies are missing or damaged, or others than the config says.
    """
    if not has_vocabularies(directory):
        make = _given if data_config.vocabularies else _trained
        save_vocabularies(directory, *make(train, data_config))
    return load_vocabularies(directory)


def _trained(train: Texts, data_config: DataConfig) -> Pair:
    subwords = data_config.subwords
    if subwords is None:
        of_sources, of_targets = data_config.units
        return (
            SymbolVocabulary.train(of_sources, train.sources),
            SymbolVocabulary.train(of_targets, train.targets),
        )
    if subwords.joint:
        joint = _of_kind(subwords, [*train.sources, *train.targets])
        return joint, joint
    return _of_kind(subwords, train.sources), _of_kind(subwords, train.targets)


def _of_kind(subwords: SubwordsConfig, texts: Sequence[str]) -> Vocabulary:
    if subwords.kind == "bpe":
        return SubwordVocabulary.train(texts, subwords.size)
    return SymbolVocabulary.train(subwords.kind, texts, subwords.size)


def _given(train: Texts, data_config: DataConfig) -> Pair:
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
