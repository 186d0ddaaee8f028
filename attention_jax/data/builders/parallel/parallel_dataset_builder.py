"""TFDS builder of the user's own parallel text, as two files or one table."""

import dataclasses
import hashlib

import tensorflow_datasets as tfds
from absl import logging

from attention_jax.data.builders.blocks import Example, ManySided, block_features, to_blocks
from attention_jax.data.builders.splitting import hold_out
from attention_jax.data.lines import MAX_LINE_CHARACTERS, read_lines, read_pairs
from attention_jax.errors import DataError
from attention_jax.spaced_words import strip_spaces

Pair = tuple[str, ...]  # source, target, and the texts of further sources


@dataclasses.dataclass(frozen=True)
class Corpus:
    """The files of a split: one for each side, or a table as `source` alone.

    Attributes:
      source: File of the sources, or of the table.
      target: File of the targets.
      further: (name, file) of each further source.
    """

    source: str
    target: str = ""
    further: tuple[tuple[str, str], ...] = ()

    def pairs(self) -> list[Pair]:
        """Reads the (source, target) pairs, including empty and excessively long lines.

        The texts of further sources stand behind both.

        Raises:
          DataError: Naming file and line, if a file cannot be read or is not as it should be.
        """
        pairs = read_pairs(self.source, self.target) if self.target else self._read_table()
        for _, path in self.further:
            lines = read_lines(path)
            if len(lines) != len(pairs):
                raise DataError(
                    f"{path}: expected {len(pairs)} lines as in {self.source}, found {len(lines)}"
                )
            pairs = [(*pair, strip_spaces(line)) for pair, line in zip(pairs, lines, strict=True)]
        return pairs

    def location(self, number: int, side: str = "source") -> str:
        """Returns file and line, counted from 1, for messages."""
        paths = {"target": self.target, **dict(self.further)}
        return f"{paths.get(side) or self.source}:{number}"

    def paths(self) -> tuple[str, ...]:
        """Returns all files, that of the targets empty where there is a table."""
        return self.source, self.target, *(path for _, path in self.further)

    def problem(self, pair: Pair) -> tuple[str, str] | None:
        """Returns the side of a pair that cannot be used and why, or None.

        The text of a further source may be empty.
        """
        sides = "source", "target", *(name for name, _ in self.further)
        for side, text in zip(sides, pair, strict=True):
            if side in ("source", "target") and not text.strip():
                return side, f"expected a {side} sentence, found an empty line"
            if len(text) > MAX_LINE_CHARACTERS:
                return side, (
                    f"expected a {side} line of at most {MAX_LINE_CHARACTERS} characters, "
                    f"found {len(text)}"
                )
        return None

    def _read_table(self) -> list[Pair]:
        pairs = []
        for number, line in enumerate(read_lines(self.source), start=1):
            columns = line.split("\t")
            if len(columns) != 2:
                raise DataError(
                    f"{self.location(number)}: expected 2 columns separated by a tab, "
                    f"found {len(columns)}"
                )
            pairs.append((strip_spaces(columns[0]), strip_spaces(columns[1])))
        return pairs


@dataclasses.dataclass
class ParallelText(tfds.core.BuilderConfig):
    """The corpora of the splits; a missing one is held out from the training pairs.

    Attributes:
      train: Training pairs.
      validation: Validation pairs, if they have files.
      test: Likewise.
      validation_pairs: How many to hold out where they have none.
      test_pairs: Likewise.
      lowercase: Whether texts will be put in lower case, so that sources which differ in case are
        held out together.
    """

    train: Corpus = Corpus("")
    validation: Corpus | None = None
    test: Corpus | None = None
    validation_pairs: int = 1000
    test_pairs: int = 1000
    lowercase: bool = False


class Builder(tfds.core.GeneratorBasedBuilder):
    """Pairs of lines; every pair is an example in every split."""

    VERSION = tfds.core.Version("1.1.0")
    RELEASE_NOTES = {
        "1.1.0": "Lines that are often repeated are not held out.",
        "1.0.0": "Two files or one table.",
    }

    def _info(self) -> tfds.core.DatasetInfo:
        features = block_features([name for name, _ in self.builder_config.train.further])
        return self.dataset_info_from_configs(features=features, disable_shuffling=True)

    def _split_generators(self, dl_manager):
        splits = read_splits(self.builder_config)
        return {name: self._generate_examples(pairs) for name, pairs in splits.items()}

    def _generate_examples(self, pairs):
        names = [name for name, _ in self.builder_config.train.further]
        if not names:
            yield from to_blocks(Example(source, (target,)) for source, target in pairs)
            return
        yield from to_blocks(
            ManySided(source, (target,), dict(zip(names, others, strict=True)))
            for source, target, *others in pairs
        )


def read_splits(config: ParallelText) -> dict[str, list[Pair]]:
    """Reads all three splits, holding out training pairs for a split without files.

    Raises:
      DataError: Naming file and line of whatever is wrong.
    """
    train = usable_pairs(config.train)
    heldout = {}
    for name, corpus, count in (
        ("validation", config.validation, config.validation_pairs),
        ("test", config.test, config.test_pairs),
    ):
        if corpus is None:
            heldout[name], train = hold_out(
                train, name, count, config.train.source, lowercase=config.lowercase
            )
        else:
            heldout[name] = checked_pairs(corpus)
    return {"train": train, **heldout}


def training_lines(config: ParallelText) -> tuple[list[int], list[Pair]]:
    """Finds the lines of the training text that are trained on.

    Returns:
      (numbers, pairs): the line of every training pair, from 0, and the pairs of all lines.

    Raises:
      DataError: As `read_splits`.
    """
    # All pairs of a source line are held out together, so the source alone decides.
    sources = {pair[0] for pair in read_splits(config)["train"]}
    pairs = config.train.pairs()
    numbers = [
        number
        for number, pair in enumerate(pairs)
        if pair[0] in sources and config.train.problem(pair) is None
    ]
    return numbers, [pair[:2] for pair in pairs]


def count_unusable(corpus: Corpus) -> int:
    """Counts the training pairs that are left out because a line is empty or too long."""
    return sum(corpus.problem(pair) is not None for pair in corpus.pairs())


def usable_pairs(corpus: Corpus) -> list[Pair]:
    """Returns the training pairs without those that have an empty or too long line, and warns."""
    pairs = corpus.pairs()
    usable = [pair for pair in pairs if corpus.problem(pair) is None]
    if not usable:
        raise DataError(f"{corpus.source}: expected pairs of lines, found only empty or long ones")
    if len(usable) < len(pairs):
        logging.warning(
            "%s: left out %d of %d pairs with an empty side or one of more than %d characters",
            corpus.source,
            len(pairs) - len(usable),
            len(pairs),
            MAX_LINE_CHARACTERS,
        )
    return usable


def checked_pairs(corpus: Corpus) -> list[Pair]:
    """Returns the pairs of an evaluation split, all of which must be usable.

    Were some left out, the lines of predictions would no longer be those of the user's files.
    """
    pairs = corpus.pairs()
    for number, pair in enumerate(pairs, start=1):
        side, problem = corpus.problem(pair) or (None, None)
        if side is not None:
            raise DataError(f"{corpus.location(number, side)}: {problem}")
    return pairs


def parallel_text(train: Corpus, **fields) -> ParallelText:
    """Makes a builder config whose name is a hash of all files' content and of the settings.

    TFDS keeps prepared data by the config's name, so changed files are prepared anew.

    Args:
      train: The training corpus.
      **fields: The other fields of `ParallelText`.

    Raises:
      DataError: If a file cannot be read.
    """
    config = ParallelText(name="unnamed", train=train, **fields)
    sizes = f"{config.validation_pairs} {config.test_pairs}{' lower case' * config.lowercase}"
    digest = hashlib.sha256(sizes.encode())
    for corpus in (config.train, config.validation, config.test):
        for path in corpus.paths() if corpus else ("", ""):
            digest.update(path.encode() + b"\0" + _content_digest(path))
    for name, _ in config.train.further:
        digest.update(name.encode() + b"\0")
    return dataclasses.replace(config, name=digest.hexdigest()[:20])


def _content_digest(path: str) -> bytes:
    """Hashes the content of a file, in pieces that fit into memory."""
    if not path:
        return b""
    try:
        with open(path, "rb") as handle:
            return hashlib.file_digest(handle, "sha256").digest()
    except OSError as error:
        raise DataError(f"{path}: expected a readable text file ({error.strerror})") from None
