"""From the config of a data set to its examples, through its builder."""

import dataclasses
import importlib
from collections.abc import Mapping, Sequence

from attention_jax.data.config import (
    DataConfig,
    Multi30kConfig,
    ParallelConfig,
    TatoebaConfig,
)

Examples = Mapping[str, Sequence[tuple[str, tuple[str, ...]]]]


@dataclasses.dataclass(frozen=True)
class TextLines:
    """Where in the text files of the user the training pairs stand.

    Attributes:
      path: The text; of two files, the one of the sources.
      numbers: The line of every training pair, from 0; lines without one are left out or held out.
      pairs: Source and target of every line.
    """

    path: str
    numbers: list[int]
    pairs: list[tuple[str, str]]


def load_corpus(data_config: DataConfig) -> Examples:
    """Returns the examples of a data set by split: (source, accepted outputs) each.

    The builders are imported here and not above, so that programs which need no data set do not
    wait for TFDS.

    Raises:
      DataError: If the data cannot be had or is not what it should be.
    """
    from attention_jax.data.preparation import load_examples

    builder = _builder_module(data_config)
    return load_examples(builder.Builder, _builder_config(builder, data_config))


def training_lines(data_config: DataConfig) -> TextLines | None:
    """Returns which lines of the user's own text the training pairs are; None for other data.

    Raises:
      DataError: If the text cannot be read.
    """
    if not isinstance(data_config, ParallelConfig):
        return None
    builder = _builder_module(data_config)
    config = _builder_config(builder, data_config)
    return TextLines(config.train.source, *builder.training_lines(config))


def count_unusable(data_config: DataConfig) -> int:
    """Returns how many pairs of the user's own training text are left out; 0 for other data.

    These have an empty side, or one that no sentence is as long as. They were left out when the
    text was prepared, which a later run on the same text does not see.

    Raises:
      DataError: If the text cannot be read.
    """
    if not isinstance(data_config, ParallelConfig):
        return 0
    builder = _builder_module(data_config)
    return builder.count_unusable(_corpus(builder, data_config, "train"))


def _builder_module(data_config: DataConfig):
    name = data_config.name
    return importlib.import_module(f"attention_jax.data.builders.{name}.{name}_dataset_builder")


def _builder_config(builder, data_config: DataConfig):
    match data_config:
        case Multi30kConfig():
            return f"{data_config.source_language}-{data_config.target_language}"
        case TatoebaConfig():
            languages = f"{data_config.source_language}-{data_config.target_language}"
            return f"{languages}-lowercase" if data_config.lowercase else languages
        case ParallelConfig():
            return builder.parallel_text(
                _corpus(builder, data_config, "train"),
                validation=_corpus(builder, data_config, "validation"),
                test=_corpus(builder, data_config, "test"),
                validation_pairs=data_config.validation_pairs,
                test_pairs=data_config.test_pairs,
                lowercase=data_config.lowercase,
            )
    return None


def _corpus(builder, data_config: ParallelConfig, split: str):
    source, target, table = data_config.files(split)
    return builder.Corpus(table or source, target) if table or source else None
