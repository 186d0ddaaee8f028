"""Links between the tokens of the training text, from word alignments."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Int

from attention_jax.data.config import AlignmentConfig, DataConfig
from attention_jax.data.lines import read_lines
from attention_jax.data.tasks import Task
from attention_jax.data.text.spans import overlaps
from attention_jax.data.text.tokenization import JOINER, tokenize
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.errors import ConfigError, DataError
from attention_jax.evaluation.pharaoh import parse_lines
from attention_jax.evaluation.symmetrization import symmetrize
from attention_jax.objectives import Objective

Links = Int[np.ndarray, "_ 2"]
WordLinks = list[tuple[int, int]]


def training_links(
    task: Task,
    data_config: DataConfig,
    objective: Objective,
    report: Callable[[str], None] = lambda line: None,
) -> list[Links] | None:
    """Returns the tokens that belong together in every training pair.

    A link between two words becomes links between all their tokens; the two ends of sentence are
    linked.

    Args:
      task: What is trained on.
      data_config: Its config, whose `alignment` says where word alignments come from.
      objective: Whether its terms need links.
      report: Called with lines that say how far an aligner is.

    Returns:
      For each pair its (target, source) token indices; None if the objective needs none.

    Raises:
      ConfigError: If links are needed and the config says of none, or the other way round.
      DataError: If a file of links does not fit the text.
    """
    split = task.split("train")
    config = getattr(data_config, "alignment", AlignmentConfig())
    if objective.needs_links != (config.method != "none"):
        wanted = "word alignments, which an objective needs"
        if not objective.needs_links:
            wanted = "'none', for no objective needs word alignments"
        raise ConfigError(
            f"config.data.alignment.method: expected {wanted}, found {config.method!r}"
        )
    if not objective.needs_links:
        return None
    if config.method == "file":
        words = [[text.split() for text in side] for side in (split.sources, split.targets)]
        aligned = _read(config, task, *words)
    else:
        words = [[_plain_words(text) for text in side] for side in (split.sources, split.targets)]
        aligned = _aligned(config, *words, report)
    tokens = (_tokens(split.source_vocabulary, split.sources, words[0]),
              _tokens(split.target_vocabulary, split.targets, words[1]))  # fmt: skip
    return [_token_links(*pair) for pair in zip(aligned, *tokens, strict=True)]


def _aligned(
    config: AlignmentConfig,
    sources: list[list[str]],
    targets: list[list[str]],
    report: Callable[[str], None],
) -> list[WordLinks]:
    from attention_jax.data.alignment.aligners import align

    forward, reverse = align(sources, targets, config.method, report=report)
    return [
        sorted(symmetrize(*pair, config.symmetrization))
        for pair in zip(forward, reverse, strict=True)
    ]


def _read(
    config: AlignmentConfig, task: Task, sources: list[list[str]], targets: list[list[str]]
) -> list[WordLinks]:
    """Reads the lines of a file, of which only those of the pairs that are trained on count."""
    path, numbers = Path(config.file), task.split("train").numbers
    lines = read_lines(path)
    if len(lines) != task.num_training_pairs:
        raise DataError(
            f"{path}: expected {task.num_training_pairs} lines, one for each training pair, found "
            f"{len(lines)} (pairs that are empty or held out have none)"
        )
    lengths = {
        number: (len(source), len(target))
        for number, source, target in zip(numbers, sources, targets, strict=True)
    }
    # Pairs that are left out of training are not checked against their text, which is gone.
    unknown = (10**9, 10**9)
    links = parse_lines(
        lines,
        str(path),
        base=config.base,
        lengths=[lengths.get(number, unknown) for number in range(len(lines))],
    )
    return [sorted(links[number].possible) for number in numbers]


def _plain_words(text: str) -> list[str]:
    return [word.replace(JOINER, "") for word in tokenize(text)]


def _tokens(
    vocabulary: Vocabulary, texts: Sequence[str], words: Iterable[Sequence[str]]
) -> list[list[list[int]]]:
    """Returns, for each text, the tokens of each word, then those of the end of sentence."""
    found = []
    for text, its_words in zip(texts, words, strict=True):
        surfaces = vocabulary.surfaces(text)
        try:
            found.append([*overlaps(its_words, surfaces), [len(surfaces)]])
        except ValueError as error:  # such as the sign that stands for a space in subwords
            raise DataError(f"training text {text!r}: no words to be linked, {error}") from None
    return found


def _token_links(
    links: WordLinks, source_tokens: list[list[int]], target_tokens: list[list[int]]
) -> Links:
    ends = (len(source_tokens) - 1, len(target_tokens) - 1)
    pairs = {
        (target, source)
        for source_word, target_word in (*links, ends)
        for source in source_tokens[source_word]
        for target in target_tokens[target_word]
    }
    return np.array(sorted(pairs), np.int32)
