"""Configs of data sets: what all of them share; a data set's own is with its builder, by name."""

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar

from attention_jax.configuration import setting
from attention_jax.discovery import Parts
from attention_jax.errors import ConfigError

DATA_SETS = Parts("attention_jax.data.builders")
_WITH_TASKS = Parts("attention_jax.data.tasks")  # tasks that bring a data set of their own

# The examples of each split. An example is a source, its accepted outputs, the preferred one first,
# and, for further sources and for tasks with fields that texts do not determine, a mapping from
# their names to values.
Corpus = Mapping[str, Sequence[tuple[Any, ...]]]
# The same as `evaluation.symmetrization.METHODS`, which this module does not import.
SYMMETRIZATIONS = (
    "intersection",
    "union",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
)


@dataclasses.dataclass(frozen=True)
class SubwordsConfig:
    """Tokenization: how text becomes tokens.

    Attributes:
      kind: `bpe` (sentencepiece), `words` (with punctuation apart), `characters`, or `code` (names,
        numbers, operators and quoted strings).
      size: Maximum size of the vocabulary, including the four special tokens.
      joint: Whether both languages share one vocabulary.
    """

    kind: str = setting("bpe", choices=("bpe", "words", "characters", "code"))
    size: int = setting(8000, at_least=5)
    joint: bool = setting(False)


@dataclasses.dataclass(frozen=True)
class AlignmentConfig:
    """Word alignments of the training text, for objectives that need them.

    Attributes:
      method: `spelling`, `agreement`, `hmm` and `ibm1` train aligners of this package on the
        training text, and `eflomal` calls the program of that name, all with punctuation apart;
        `file` reads links; `none` is for no alignments. A text is aligned once, and the result is
        kept beside the prepared data sets for all runs.
      symmetrization: How an aligner's two directions are combined.
      file: File of links `0-0 2-1` between words, which only spaces and tabs separate. It has a
        line for each line of the user's training text, also for pairs that are not trained on; for
        other data sets, a line for each training pair.
      base: Number of a sentence's first word in the file.
    """

    method: str = setting(
        "none", choices=("none", "spelling", "agreement", "hmm", "ibm1", "eflomal", "file")
    )
    symmetrization: str = setting("grow-diag-final-and", choices=SYMMETRIZATIONS)
    file: str = setting("", is_file=True)
    base: int = setting(0, choices=(0, 1))

    def __post_init__(self):
        if bool(self.file) != (self.method == "file"):
            wanted = "a path" if self.method == "file" else f"none with method {self.method!r}"
            raise ValueError(f"file: expected {wanted}, found {self.file!r}")
        if self.base and self.method != "file":
            raise ValueError(f"base: expected only with method 'file', found {self.base}")
        if self.method in ("none", "file") and self.symmetrization != "grow-diag-final-and":
            raise ValueError(
                f"symmetrization: expected an aligner as method beside it, found {self.method!r}"
            )


@dataclasses.dataclass(frozen=True)
class LexiconConfig:
    """Translation lexicon, of a readout that reads one or of shortlists: where it is from.

    Attributes:
      method: `ibm1` and `hmm` estimate it from the tokens of the training text, by the aligner of
        that name.
      file: File of lines `source target probability`, which only spaces and tabs separate. Beside
        a method, it is for words of which the training text has none.
      size: How many target tokens a source token has at most, the most probable ones.
    """

    method: str = setting("none", choices=("none", "ibm1", "hmm"))
    file: str = setting("", is_file=True)
    size: int = setting(10, at_least=1)

    def __post_init__(self):
        if not self.is_given and self.size != 10:
            raise ValueError(f"size: expected only with a method or a file, found {self.size}")

    @property
    def is_given(self) -> bool:
        """Whether there is a lexicon."""
        return self.method != "none" or bool(self.file)


@dataclasses.dataclass(frozen=True)
class TextLines:
    """The lines of the user's text files on which the training pairs are.

    Attributes:
      path: The text file; of two files, that of the sources.
      numbers: The line of every training pair, from 0. Other lines are held out or unusable.
      pairs: Source and target of every line.
    """

    path: str
    numbers: list[int]
    pairs: list[tuple[str, str]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
    """Config of any data set: lengths and batches.

    Attributes:
      batch_size: Examples, or target positions, in a training batch of all processes together.
      batch_unit: Whether `batch_size` counts `sentences` or target `tokens`, padding included.
      batch_multiple: With `tokens`, the number of rows is a multiple of this, so that devices
        share them evenly.
      num_buckets: Maximum number of shapes of training batches.
      gradual_shapes: Whether the first epoch begins with batches of one shape, and the others come
        in one after another, so that training need not wait until the update is compiled for all.
      max_source_length: Longest training source in tokens, EOS included; longer ones are dropped.
      max_target_length: Longest training target in tokens, EOS included; longer ones are dropped.
      max_train_examples: Size of a fixed random sample of the training pairs; 0 takes all.
      eval_batch_size: Examples in an evaluation batch of all processes together.
      lexicon: Where a readout that reads a lexicon, or `search.shortlist`, has it from.

    Class attributes are defaults, for data sets whose config has no field of that name:
      task: What is learnt from the data: the name of a file of `data/tasks`.
      units: Tokens of sources and of targets, as kinds of a `SymbolVocabulary`.
      subwords: Tokenization, which replaces `units` if it is not None.
      vocabulary_size: Most ids of each vocabulary of `units`, special ones among them; 0 for all.
      oracle_steps: The aligner whose STEPs stand among the targets' symbols; `none` without STEPs.
      has_lowercase_sources: Whether all sources are in lower case, so that the task `pronounce`
        lowercases a user's.
      must_be_read: Fields without which a source is incomplete, so that a model has to read them.
      further_splits: Names of splits beside `train`, `validation` and `test`.
      brings_links: Whether `gold_links` has links of its own, so that none are looked for.
      source_sizes: By the name of a source, sizes of what it consists of, such as `rows` of a
        picture, by the fields of its input and encoder that have to agree with them.
    """

    task: ClassVar[str] = "translate"
    units: ClassVar[tuple[str, str]] = ("characters", "words")
    vocabulary_size: ClassVar[int] = 0
    subwords: ClassVar[SubwordsConfig | None] = None
    vocabularies: ClassVar[str] = ""
    alignment: ClassVar[AlignmentConfig] = AlignmentConfig()
    lowercase: ClassVar[bool] = False
    bleu_tokenizer: ClassVar[str] = "13a"
    min_train_source_words: ClassVar[int] = 0
    max_train_source_words: ClassVar[int] = 0
    oracle_steps: ClassVar[str] = "none"
    has_lowercase_sources: ClassVar[bool] = False
    must_be_read: ClassVar[tuple[str, ...]] = ()
    further_splits: ClassVar[tuple[str, ...]] = ()
    brings_links: ClassVar[bool] = False
    source_sizes: ClassVar[Mapping[str, Mapping[str, int]]] = {}

    batch_size: int = setting(64, at_least=1)
    batch_unit: str = setting("sentences", choices=("sentences", "tokens"))
    batch_multiple: int = setting(8, at_least=1)
    num_buckets: int = setting(8, at_least=1)
    gradual_shapes: bool = setting(True)
    max_source_length: int = setting(64, at_least=2)
    max_target_length: int = setting(64, at_least=2)
    max_train_examples: int = setting(0, at_least=0)
    eval_batch_size: int = setting(64, at_least=1)
    lexicon: LexiconConfig = setting(LexiconConfig())

    def load(self) -> Corpus:
        """Returns the examples of every split, prepared by the data set's TFDS builder.

        Raises:
          DataError: If the data cannot be obtained or is not as it should be.
        """
        # Imported here, so that programs which need no data set do not wait for TFDS.
        from attention_jax.data.preparation import load_examples

        return load_examples(self.builder.Builder, self.builder_config())

    def finished(self, splits: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the splits, once there are vocabularies, as they are to be learnt from.

        Raises:
          DataError: If they cannot be made so.
        """
        return splits

    def gold_links(self, split: Any) -> list[Any] | None:
        """Returns the links (target, source) of every example of a split that the data itself has.

        None where links are for an aligner to find: always, unless the data `brings_links`.
        """
        return None

    @property
    def further_sources(self) -> tuple[str, ...]:
        """Names of the texts that stand beside each source; see `data.further_sources`."""
        return ()

    @property
    def builder(self) -> ModuleType:
        """The module of the TFDS builder."""
        name = self.name  # type: ignore[attr-defined]
        return importlib.import_module(f"attention_jax.data.builders.{name}.{name}_dataset_builder")

    def builder_config(self) -> Any:
        """Returns the TFDS builder's own config, or the name of one."""
        return None

    def training_lines(self) -> TextLines | None:
        """Returns the lines of the user's own text that are trained on; None for other data.

        Raises:
          DataError: If the text cannot be read.
        """
        return None

    def count_unusable(self) -> int:
        """Counts the pairs of the user's own training text that are left out; 0 for other data.

        These have an empty or an excessively long side. Preparing the text reports them, but later
        runs on the same text find it prepared.

        Raises:
          DataError: If the text cannot be read.
        """
        return 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationConfig(DataConfig):
    """Config of any translation data set.

    Attributes:
      subwords: How text becomes tokens.
      vocabularies: Folder of saved vocabularies to use instead of new ones, such as `vocab/` of the
        run that `training.initial_weights` come from. They must be of the kind in `subwords`, and
        joint or not as it says; their size may differ. Empty for new ones.
      alignment: Where links between the words of the training text come from.
      lowercase: Whether sources, targets and references are put in lower case, before splits are
        made: sources that differ only in case are in one split.
      bleu_tokenizer: How BLEU splits outputs and references into words: sacrebleu's `13a`, as is
        usual for European languages, `intl`, `zh` for Chinese, `char` for other languages without
        spaces, or `none` for texts that are tokenised: with `lowercase`, the lower-cased and
        tokenised BLEU of many papers, which is another scale than that of `13a`.
      min_train_source_words: Fewest words, separated by spaces, of a training source.
      max_train_source_words: Most words of a training source; 0 for no limit. Neither changes the
        vocabulary or the evaluation splits.
    """

    subwords: SubwordsConfig = setting(SubwordsConfig())
    vocabularies: str = setting("", is_file=True)
    alignment: AlignmentConfig = setting(AlignmentConfig())
    lowercase: bool = setting(False)
    bleu_tokenizer: str = setting("13a", choices=("13a", "intl", "zh", "char", "none"))
    min_train_source_words: int = setting(0, at_least=0)
    max_train_source_words: int = setting(0, at_least=0)

    def __post_init__(self):
        if 0 < self.max_train_source_words < self.min_train_source_words:
            raise ValueError(
                "max_train_source_words: expected at least min_train_source_words "
                f"({self.min_train_source_words}), found {self.max_train_source_words}"
            )


def data_config_class(name: str) -> type[DataConfig]:
    """Returns the config class of a data set, which is with its builder or with its own task.

    Raises:
      KeyError: If there is none of that name, with the list of names, and where one's own would be.
      ConfigError: If there are two.
    """
    found = [parts for parts in (DATA_SETS, _WITH_TASKS) if name in parts]
    if not found:
        raise KeyError(sorted([*DATA_SETS.names(), *_WITH_TASKS.names()]), _WITH_TASKS.own)
    if len(found) > 1:
        raise ConfigError(
            f"attention_jax.data: expected one data set called {name!r}, found it in builders and "
            "in tasks"
        )
    return found[0].config(name)


def check_languages(source: str, target: str) -> None:
    """Raises `ValueError` if source and target language are the same."""
    if source == target:
        raise ValueError(f"target_language: expected another than the source's, found {target!r}")
