"""Word alignments of the training text: found once, then kept in the run directory."""

from collections.abc import Callable, Sequence
from pathlib import Path

from attention_jax.data.config import AlignmentConfig, DataConfig
from attention_jax.data.lines import read_lines
from attention_jax.data.loading import TaskData
from attention_jax.errors import DataError
from attention_jax.evaluation.alignment import to_pharaoh
from attention_jax.evaluation.pharaoh import may_count_from_one, parse_lines
from attention_jax.evaluation.symmetrization import symmetrize
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.spaced_words import spaced_words

Sentences = Sequence[Sequence[str]]
WordLinks = list[tuple[int, int]]


def word_links(
    task: TaskData,
    data_config: DataConfig,
    words: tuple[Sentences, Sentences],
    directory: RunDirectory,
    report: Callable[[str], None],
) -> list[WordLinks]:
    """Aligns the words of every training pair, or reads their alignment: (source, target) links.

    The first process finds the links once and writes them to the run directory. From there all
    processes read them, now and whenever the run is resumed: some aligners sample, and a user's
    file may have changed since.

    Args:
      task: The data to train on.
      data_config: Its `alignment.method` is not `none`.
      words: The words of the sources and of the targets.
      directory: The run.
      report: Takes lines on the aligner's progress, or a notice that the words of a file seem to
        be counted from 1 where the config says 0.

    Raises:
      DataError: If a file of links, or the run's own, does not fit the text.
      UserError: If the aligner fails.
    """
    if directory.writes and not directory.links.exists():
        if data_config.alignment.method == "file":
            found = _from_file(task, data_config, report)
        else:
            found = _aligned(data_config.alignment, words, report)
        directory.write_lines(directory.links, map(to_pharaoh, found))
    # Read back even where just written, so that the first process and a resumed one see the same.
    lengths = [(len(source), len(target)) for source, target in zip(*words, strict=True)]
    try:
        marked = parse_lines(read_lines(directory.links), str(directory.links), lengths=lengths)
    except DataError as error:
        raise DataError(
            f"{error} (the links of the text that this run was begun with; without the file they "
            "are found anew)"
        ) from None
    return [sorted(links.possible) for links in marked]


def _aligned(
    config: AlignmentConfig, words: tuple[Sentences, Sentences], report: Callable[[str], None]
) -> list[WordLinks]:
    from attention_jax.data.alignment.cache import align_once  # only a run with an aligner needs it

    # Two directional alignments, symmetrised as the config says (such as grow-diag-final).
    forward, reverse = align_once(*words, method=config.method, report=report)
    return [
        sorted(symmetrize(*pair, config.symmetrization))
        for pair in zip(forward, reverse, strict=True)
    ]


def _from_file(
    task: TaskData, data_config: DataConfig, report: Callable[[str], None]
) -> list[WordLinks]:
    """Reads a Pharaoh file; lines of pairs that are left out of training are checked too."""
    path, base = Path(data_config.alignment.file), data_config.alignment.base
    lines, text = read_lines(path), data_config.training_lines()
    numbers = task.split("train").numbers
    # The file has a line for every line of the text, and training may have left some of them out:
    # `numbers` says which line belongs to which training pair.
    if text is None:
        total, what = task.num_training_pairs, "training pair of the data set"
    else:
        total, what = len(text.pairs), f"line of {text.path}"
        numbers = [text.numbers[number] for number in numbers]
    if len(lines) != total:
        raise DataError(f"{path}: expected {total} lines, one for each {what}, found {len(lines)}")
    pairs = _all_pairs(data_config) if text is None else text.pairs
    lengths = [(len(spaced_words(source)), len(spaced_words(target))) for source, target in pairs]
    links = parse_lines(lines, str(path), base=base, lengths=lengths)
    if not any(pair.possible for pair in links):
        raise DataError(f"{path}: expected links, found none in {total} lines")
    if base == 0 and may_count_from_one(links):
        report(f"{path}: no link names word 0: counted from 1? --config.data.alignment.base=1")
    return [sorted(links[number].possible) for number in numbers]


def _all_pairs(data_config: DataConfig) -> list[tuple[str, str]]:
    """Returns all training pairs of a data set, those included that the config leaves out."""
    return [
        (source, target)
        for source, targets in data_config.load()["train"]
        for target in targets
    ]
