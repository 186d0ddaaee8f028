"""Links between the tokens of the training text, from word alignments."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
from jaxtyping import Int

from attention_jax.data.config import DataConfig, TranslationConfig
from attention_jax.data.tasks import Task
from attention_jax.data.text.spans import overlaps
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.data.text.words import words_of_text
from attention_jax.errors import DataError
from attention_jax.objectives import Objective
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.spaced_words import spaced_words
from attention_jax.training.word_alignments import WordLinks, word_links

Links = Int[np.ndarray, "_ 2"]


def training_links(
    task: Task,
    data_config: DataConfig,
    objective: Objective,
    directory: RunDirectory,
    report: Callable[[str], None] = lambda line: None,
) -> list[Links] | None:
    """Returns the tokens that belong together in every training pair.

    A link between two words becomes links between all their tokens; the two ends of sentence are
    linked.

    Args:
      task: What is trained on.
      data_config: Its config, whose `alignment` says where word alignments come from; checked, as
        part of the experiment's, to have some if they are needed.
      objective: Whether its terms need links.
      directory: The run, where word alignments are kept.
      report: Called with lines that say how far an aligner is.

    Returns:
      For each pair its (target, source) token indices; None if the objective needs none.

    Raises:
      DataError: If a file of links does not fit the text.
    """
    if "links" not in objective.fields:
        return None
    assert isinstance(data_config, TranslationConfig)  # of which the config makes sure
    split = task.split("train")
    words_of = spaced_words if data_config.alignment.method == "file" else words_of_text
    sources, targets = (
        [words_of(text) for text in side] for side in (split.sources, split.targets)
    )
    aligned = word_links(task, data_config, (sources, targets), directory, report)
    tokens = (_tokens(split.source_vocabulary, split.sources, sources),
              _tokens(split.target_vocabulary, split.targets, targets))  # fmt: skip
    if objective.inherits_by_word:
        aligned = [inherited(*pair) for pair in zip(aligned, map(len, targets), strict=True)]
    return [_token_links(*pair) for pair in zip(aligned, *tokens, strict=True)]


def inherited(links: WordLinks, num_targets: int) -> WordLinks:
    """Gives every target word without a link those of the nearest word that has some.

    Of two neighbours at the same distance, the right one. Without any link there is none to get.

    Args:
      links: (source, target) words.
      num_targets: Number of target words, EOS not counted.

    Source:
      Devlin et al. (2014), on affiliation, as used by Liu et al. (2016).
    """
    sources: dict[int, list[int]] = {}
    for source, target in links:
        sources.setdefault(target, []).append(source)
    if not sources:
        return []
    return [
        (source, target)
        for target in range(num_targets)
        for source in sources[min(sources, key=lambda at: (abs(at - target), at < target))]
    ]


def _tokens(
    vocabulary: Vocabulary, texts: Sequence[str], words: Iterable[Sequence[str]]
) -> list[list[list[int]]]:
    """Returns, for each text, the tokens of each word, then those of the end of sentence."""
    found = []
    for text, its_words in zip(texts, words, strict=True):
        surfaces = vocabulary.surfaces(text)
        try:
            found.append([*overlaps(its_words, surfaces), [len(surfaces)]])
        except ValueError as error:  # of a vocabulary that has changed its text
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
