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
    """Adds to a task's data the fields that objectives need and its batches lack.

    One that finds its values itself is added to every split. Links between tokens are known of the
    training text alone, from word alignments.

    Args:
      task: What is trained on.
      data_config: Its config, whose `alignment` says where word alignments come from; checked, as
        part of the experiment's, to have some if they are needed.
      objective: Whose terms need fields; checked to be there.
      directory: The run, where word alignments are kept.
      report: Called with lines that say how far an aligner is.

    Raises:
      DataError: If a file of links does not fit the text.
    """
    task = task.with_fields(objective.fields)
    if links.FIELD.name not in objective.fields:
        return task
    found = training_links(task, data_config, objective, directory, report)
    return task.with_field("train", links.FIELD, found)


def training_links(
    task: TaskData,
    data_config: DataConfig,
    objective: Objective,
    directory: RunDirectory,
    report: Callable[[str], None] = lambda line: None,
) -> list[links.Links]:
    """Returns the tokens that belong together in every training pair.

    A link between two words becomes links between all their tokens; the two ends of sentence are
    linked.

    Args:
      task: What is trained on.
      data_config: Its config, with an `alignment`.
      objective: Whether target words without a link inherit one.
      directory: The run, where word alignments are kept.
      report: Called with lines that say how far an aligner is.

    Returns:
      For each pair its (target, source) token indices.

    Raises:
      DataError: If a file of links does not fit the text.
    """
    split = task.split("train")
    words_of = spaced_words if data_config.alignment.method == "file" else words_of_text
    sources, targets = (
        [words_of(text) for text in side] for side in (split.sources, split.targets)
    )
    aligned = word_links(task, data_config, (sources, targets), directory, report)
    if objective.inherits_by_word:
        lengths = map(len, targets)
        aligned = [links.inherited(*pair) for pair in zip(aligned, lengths, strict=True)]
    return links.token_links(split, (sources, targets), aligned)
