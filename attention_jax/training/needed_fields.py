"""Fields that objectives need beside those of the task, such as links between tokens."""

from collections.abc import Callable

from attention_jax.data.config import DataConfig
from attention_jax.data.fields import links
from attention_jax.data.loading import TaskData
from attention_jax.data.text.words import words_of_text
from attention_jax.objectives import Objective
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.spaced_words import spaced_words
from attention_jax.training.word_alignments import word_links


def with_needed_fields(
    task: TaskData,
    data_config: DataConfig,
    objective: Objective,
    directory: RunDirectory,
    report: Callable[[str], None] = lambda line: None,
) -> TaskData:
    """Adds to batches the fields that objectives need, such as links for supervised attention.

    Most fields compute their values from the examples, for every split. Links between tokens are
    known for the training text only, from the data itself or from word alignments.

    Args:
      task: The data to train on.
      data_config: Says in `alignment` where word alignments come from.
      objective: Its terms name the fields that they need.
      directory: The run, which keeps the word alignments.
      report: Takes lines on an aligner's progress.

    Raises:
      DataError: If a file of links does not fit the text.
    """
    task = task.with_fields(objective.fields)
    if links.FIELD.name not in objective.fields:
        return task
    found = data_config.gold_links(task.split("train"))
    if found is None:
        found = training_links(task, data_config, objective, directory, report)
    return task.with_field("train", links.FIELD, found)


def training_links(
    task: TaskData,
    data_config: DataConfig,
    objective: Objective,
    directory: RunDirectory,
    report: Callable[[str], None] = lambda line: None,
) -> list[links.Links]:
    """Projects word alignments onto subword tokens, for every training pair.

    A link between two words becomes links between all their tokens; the two ends of sentence are
    linked.

    Args:
      task: The data to train on.
      data_config: Says in `alignment` where word alignments come from.
      objective: Says whether target words without a link inherit one from a neighbour.
      directory: The run, which keeps the word alignments.
      report: Takes lines on an aligner's progress.

    Returns:
      For each pair its (target, source) token indices.

    Raises:
      DataError: If a file of links does not fit the text.
    """
    split = task.split("train")
    # A user's file counts words by spaces; an aligner is given words with punctuation split off.
    words_of = spaced_words if data_config.alignment.method == "file" else words_of_text
    sources, targets = (
        [words_of(text) for text in side] for side in (split.sources, split.targets)
    )
    aligned = word_links(task, data_config, (sources, targets), directory, report)
    if objective.inherits_by_word:
        lengths = map(len, targets)
        aligned = [links.inherited(*pair) for pair in zip(aligned, lengths, strict=True)]
    return links.token_links(split, (sources, targets), aligned)
