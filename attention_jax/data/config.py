"""What a config can say about data: one dataclass per data set."""

import dataclasses

from attention_jax.configuration import setting

_MULTI30K_LANGUAGES = ("en", "de", "fr", "cs")
_TATOEBA_LANGUAGES = ("en", "de")
# Those of `evaluation.symmetrization`, from which nothing of `data` imports.
SYMMETRIZATIONS = (
    "intersection",
    "union",
    "grow-diag",
    "grow-diag-final",
    "grow-diag-final-and",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataConfig:
    """What every data set has: lengths and batches.

    Attributes:
      batch_size: Examples, or target positions, in a training batch of all processes together.
      batch_unit: Whether `batch_size` counts `sentences` or target `tokens`, padding included.
      batch_multiple: With `tokens`, the number of rows is a multiple of this, so that devices
        share them evenly.
      num_buckets: Different shapes of training batches, at most.
      max_source_length: Longest training source in tokens, EOS included; longer ones are dropped.
      max_target_length: Longest training target in tokens, EOS included; longer ones are dropped.
      max_train_examples: Size of a fixed random sample of the training pairs; 0 takes all.
      eval_batch_size: Examples in an evaluation batch of all processes together.
    """

    batch_size: int = setting(64, at_least=1)
    batch_unit: str = setting("sentences", choices=("sentences", "tokens"))
    batch_multiple: int = setting(8, at_least=1)
    num_buckets: int = setting(8, at_least=1)
    max_source_length: int = setting(64, at_least=2)
    max_target_length: int = setting(64, at_least=2)
    max_train_examples: int = setting(0, at_least=0)
    eval_batch_size: int = setting(64, at_least=1)


@dataclasses.dataclass(frozen=True)
class SubwordsConfig:
    """How text becomes tokens.

    Attributes:
      kind: `bpe` (sentencepiece), `words` (with punctuation apart), or `characters`.
      size: Vocabulary size at most, the four special tokens included.
      joint: One vocabulary of both languages, or one for each.
    """

    kind: str = setting("bpe", choices=("bpe", "words", "characters"))
    size: int = setting(8000, at_least=5)
    joint: bool = setting(False)


@dataclasses.dataclass(frozen=True)
class AlignmentConfig:
    """Where word alignments of the training text come from, for objectives that need them.

    Attributes:
      method: `hmm` and `ibm1` train the aligners of this package on the training text, `eflomal`
        calls the program of that name, all with punctuation apart; `file` reads links; `none` for
        no alignments. A text is aligned once: what is found is kept beside the prepared data sets,
        for all runs.
      symmetrization: How an aligner's two directions are joined.
      file: Links `0-0 2-1` between words split at spaces and tabs alone, a line for each line
        of the training text, of which those count whose pairs are trained on; for a data set that
        is no text of the user's, a line for each training pair.
      base: Number of a sentence's first word in the file.
    """

    method: str = setting("none", choices=("none", "hmm", "ibm1", "eflomal", "file"))
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


@dataclasses.dataclass(frozen=True, kw_only=True)
class TranslationConfig(DataConfig):
    """What every translation data set has.

    Attributes:
      subwords: How text becomes tokens.
      vocabularies: Folder of saved vocabularies, such as `vocab/` of another run, to be used in
        place of new ones: those that `training.initial_weights` belong to. They are of the kind
        that `subwords` says, joint or not, and of the size that they have. None if empty.
      alignment: Where links between the words of the training text come from.
      lowercase: Sources, targets and references in lower case; what is held out is, too, so that
        sources which differ in case are in one split.
      bleu_tokenizer: How BLEU splits outputs and references into words: sacrebleu's `13a`, as is
        usual for European languages, `intl`, `zh` for Chinese, or `char` for other languages
        without spaces.
      min_train_source_words: Fewest words, split at spaces, of a training source.
      max_train_source_words: Most words of a training source; 0 for no limit. Both leave the
        vocabulary and the evaluation splits as they are.
    """

    subwords: SubwordsConfig = setting(SubwordsConfig())
    vocabularies: str = setting("", is_file=True)
    alignment: AlignmentConfig = setting(AlignmentConfig())
    lowercase: bool = setting(False)
    bleu_tokenizer: str = setting("13a", choices=("13a", "intl", "zh", "char"))
    min_train_source_words: int = setting(0, at_least=0)
    max_train_source_words: int = setting(0, at_least=0)

    def __post_init__(self):
        if 0 < self.max_train_source_words < self.min_train_source_words:
            raise ValueError(
                "max_train_source_words: expected at least min_train_source_words "
                f"({self.min_train_source_words}), found {self.max_train_source_words}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class CmudictConfig(DataConfig):
    """English words to phonemes."""

    name: str = setting("cmudict", choices=("cmudict",))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Multi30kConfig(TranslationConfig):
    """Image captions, any two of four languages.

    Attributes:
      source_language: Code of the language that is translated from.
      target_language: Code of the one that it is translated into.
    """

    name: str = setting("multi30k", choices=("multi30k",))
    source_language: str = setting("en", choices=_MULTI30K_LANGUAGES)
    target_language: str = setting("de", choices=_MULTI30K_LANGUAGES)

    def __post_init__(self):
        super().__post_init__()
        _check_pair(self.source_language, self.target_language)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TatoebaConfig(TranslationConfig):
    """Short everyday sentences in English and German, in either direction.

    Attributes:
      source_language: Code of the language that is translated from.
      target_language: Code of the one that it is translated into.
    """

    name: str = setting("tatoeba", choices=("tatoeba",))
    source_language: str = setting("en", choices=_TATOEBA_LANGUAGES)
    target_language: str = setting("de", choices=_TATOEBA_LANGUAGES)

    def __post_init__(self):
        super().__post_init__()
        _check_pair(self.source_language, self.target_language)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParallelConfig(TranslationConfig):
    """The user's own text: per split two files, or one table with tab-separated columns.

    Attributes:
      train_source: File of training sources, one a line.
      train_target: File of their translations.
      train_table: Instead of both, a file of `source<TAB>target` lines.
      validation_source: As above, for validation; without files, pairs are held out.
      validation_target: As above.
      validation_table: As above.
      validation_pairs: Pairs to hold out where validation has no files, at most a tenth of the
        text. Lines that are often repeated stay in training; see `held_out_sources`.
      test_source: As above, for the test split.
      test_target: As above.
      test_table: As above.
      test_pairs: As above, where the test split has no files.
    """

    name: str = setting("parallel", choices=("parallel",))
    train_source: str = setting("", is_file=True)
    train_target: str = setting("", is_file=True)
    train_table: str = setting("", is_file=True)
    validation_source: str = setting("", is_file=True)
    validation_target: str = setting("", is_file=True)
    validation_table: str = setting("", is_file=True)
    validation_pairs: int = setting(1000, at_least=1)
    test_source: str = setting("", is_file=True)
    test_target: str = setting("", is_file=True)
    test_table: str = setting("", is_file=True)
    test_pairs: int = setting(1000, at_least=1)

    def __post_init__(self):
        super().__post_init__()
        for split in ("train", "validation", "test"):
            source, target, table = self.files(split)
            if table and (source or target):
                raise ValueError(f"{split}_table: expected either a table or two files, found both")
            if bool(source) != bool(target):
                missing = f"{split}_target" if source else f"{split}_source"
                raise ValueError(f"{missing}: expected a file, found none")
            if split == "train" and not (table or source):
                raise ValueError(
                    "train_source: expected a file (with train_target), or train_table; found none"
                )

    def files(self, split: str) -> tuple[str, str, str]:
        """Returns the paths of a split: source, target, table; empty where not given."""
        return tuple(getattr(self, f"{split}_{part}") for part in ("source", "target", "table"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class SmokeConfig(DataConfig):
    """Numbers to be spelled out, learnt in seconds."""

    name: str = setting("smoke", choices=("smoke",))


_CONFIGS = {
    "cmudict": CmudictConfig,
    "multi30k": Multi30kConfig,
    "tatoeba": TatoebaConfig,
    "parallel": ParallelConfig,
    "smoke": SmokeConfig,
}


def data_config_class(name: str) -> type[DataConfig]:
    """Returns the dataclass of a data set.

    Raises:
      KeyError: With the list of names, if there is none such.
    """
    if name not in _CONFIGS:
        raise KeyError(sorted(_CONFIGS))
    return _CONFIGS[name]


def _check_pair(source: str, target: str) -> None:
    if source == target:
        raise ValueError(f"target_language: expected another than the source's, found {target!r}")
