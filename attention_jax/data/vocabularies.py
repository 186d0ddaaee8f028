"""Vocabularies of a run: trained on its training split, or taken from where its config says."""

from collections.abc import Sequence
from pathlib import Path

from attention_jax.data.config import DataConfig, SubwordsConfig
from attention_jax.data.examples import Texts
from attention_jax.data.lexicon import make_lexicon
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
    """Vocabularies: returns those of source and target; a joint one is the same object twice.

    Args:
      train: The training texts.
      data_config: Config of the data, with the tokenization.
      directory: The run's folder of vocabularies, which are loaded if they exist and else saved.

    Raises:
      DataError: If vocabularies are missing or damaged, or do not fit the config.
    """
    if not has_vocabularies(directory):
        make = _given if data_config.vocabularies else _trained
        pair = make(train, data_config)
        if data_config.lexicon.is_given:  # first, for with the vocabularies all is complete
            make_lexicon(train, *pair, data_config).save(directory)
        save_vocabularies(directory, *pair)
    # Read back even if new: a run that resumes then has the very same ones.
    return load_vocabularies(directory)


def _trained(train: Texts, data_config: DataConfig) -> Pair:
    """Makes vocabularies from the training texts."""
    subwords, sources = data_config.subwords, list(train.sources)
    for name in data_config.further_sources:  # which share the source's vocabulary
        sources += train.extras[name]
    if subwords is None:
        (of_sources, of_targets), size = data_config.units, data_config.vocabulary_size
        return (
            SymbolVocabulary.train(of_sources, sources, size),
            SymbolVocabulary.train(of_targets, train.targets, size),
        )
    if subwords.joint:
        joint = _of_kind(subwords, [*sources, *train.targets])
        return joint, joint
    return _of_kind(subwords, sources), _of_kind(subwords, train.targets)


def _of_kind(subwords: SubwordsConfig, texts: Sequence[str]) -> Vocabulary:
    if subwords.kind == "bpe":
        return SubwordVocabulary.train(texts, subwords.size)
    return SymbolVocabulary.train(subwords.kind, texts, subwords.size)


def _given(train: Texts, data_config: DataConfig) -> Pair:
    """Loads the vocabularies that the config names, and checks that they are as it describes."""
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
