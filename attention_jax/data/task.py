"""Tasks: what is learnt from a data set, the fields of its batches, and the metrics of outputs.

A task is a file of `data/tasks` that defines a `TASK`, and is found by its name. The config of a
data set names its task, unless the model can do only one, such as a language model; then the
model's config names it.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from attention_jax.data.config import DataConfig
from attention_jax.data.decoded import DecodedSplit, Scores
from attention_jax.data.examples import Examples, Split
from attention_jax.data.field import SOURCE, TARGET, Field
from attention_jax.data.further_sources import text_source
from attention_jax.data.lines import MAX_LINE_CHARACTERS
from attention_jax.data.pictures import Canvas
from attention_jax.data.text.vocabulary import Vocabulary
from attention_jax.discovery import Parts
from attention_jax.errors import ConfigError
from attention_jax.spaced_words import strip_spaces

TASKS = Parts("attention_jax.data.tasks", defines="TASK")
FIELDS = Parts("attention_jax.data.fields", defines="FIELD")

Scorer = Callable[[Split, Sequence[str], DataConfig], Scores]
# By metric: sufficient statistics of each sentence, and the function from their sums to the score.
Statistics = dict[str, tuple[np.ndarray, Callable[[np.ndarray], Any]]]


@dataclasses.dataclass(frozen=True)
class Metric:
    """Metric: a number by which outputs are judged during training.

    Attributes:
      name: Its name in `metrics.jsonl` and `results.json`.
      label: Its name in plots.
      panel: Label of the axis on which it is drawn, with other metrics of its kind.
      better: `min` if lower values are better, else `max`.
      decided_by: Fields of the config, other than those of the search, on which it depends.
    """

    name: str
    label: str
    panel: str
    better: str
    decided_by: tuple[str, ...] = ()


def prepare(text: str, data_config: DataConfig, *, is_source: bool = True) -> str:
    """Normalisation: brings a user's text into the form of the data set's sources or targets."""
    text = strip_spaces(text.strip("\r\n"))
    return text.lower() if data_config.lowercase else text


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """Task: the fields of a data set's examples, and how outputs are scored.

    Attributes:
      label: The kind of examples, for messages and for the hash of the data.
      fields: The fields of a batch.
      inputs: The fields of a text whose output is searched for; None for those of `fields` that are
        known before the output is.
      input_side: The vocabulary of such a text, `source` or `target`.
      source_form: What sources are: a `sequence`, or a `document`, a table of words with a sentence
        a row. A model whose config does not say otherwise reads sequences.
      longest_text: The most characters of a user's text.
      continues: Whether an output continues its input, as with a language model. The input may then
        be empty but have no unknown words, and outputs are not scored: only losses are measured.
      has_labels: Whether an output is one of the training's labels, and none other can be written.
      prepare: Function that brings a user's text into the form of the data.
      read: Function from a user's texts to values of fields that these do not tell by themselves,
        such as frames of the sound files that they name; None where texts tell everything.
      beside: By the name of a field that stands beside a text, such as a picture, the function from
        a user's lines, such as paths, to its values.
      canvas: Function from examples and the number of one to what attention to its source is drawn
        on; None where that is the source's tokens.
      word_starts: Function from the vocabulary of outputs, the T tokens of one and its attention,
        `T S`, to when its words begin, in seconds; None where a source has no time.
      scores: Function that compares outputs with references and returns metrics by name (those
        whose name ends in `_signature` are text); None for no comparison.
      details: Functions from a decoded split to further scores, such as those of n-best lists or
        of attention; computed only after training, in this order.
      statistics: Function that returns the sufficient statistics by which two runs are compared.
      detail_statistics: Function that returns those of scores in `details`, by which two runs are
        compared, too.
      metrics: The metrics of `scores` that a training may watch, in the order of drawing.
      printed: Names of the metrics that are printed at every validation.
      shown: Names of the results that are shown at the end.
      table: Function from the results of a split to further lines that are shown at the end.
      finds_dropped_words: Whether source words without a counterpart in outputs are an error.
      gathers: Names of outputs of the model that are gathered for every example of a split that is
        evaluated, such as weights of words.
      page: Name of the file of `analysis/pages` that shows what was gathered; empty for none.
    """

    label: str
    fields: tuple[Field, ...] = (SOURCE, TARGET)
    inputs: tuple[Field, ...] | None = None
    input_side: str = "source"
    source_form: str = "sequence"
    longest_text: int = MAX_LINE_CHARACTERS
    continues: bool = False
    has_labels: bool = False
    prepare: Callable[..., str] = prepare
    read: Callable[[Sequence[str], DataConfig], Mapping[str, Sequence[Any]]] | None = None
    beside: Mapping[str, Callable[[Sequence[str], DataConfig], Sequence[Any]]] = (
        dataclasses.field(default_factory=dict)
    )
    canvas: Callable[[Examples, int, DataConfig], Canvas] | None = None
    word_starts: Callable[[Vocabulary, Sequence[str], np.ndarray], np.ndarray] | None = None
    scores: Scorer | None = None
    details: tuple[Callable[[DecodedSplit], Scores], ...] = ()
    statistics: Callable[[Split, Sequence[str], DataConfig], Statistics] | None = None
    detail_statistics: Callable[[DecodedSplit], Statistics] | None = None
    metrics: tuple[Metric, ...] = ()
    printed: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    table: Callable[[Mapping[str, Any]], Sequence[str]] | None = None
    finds_dropped_words: bool = False
    gathers: tuple[str, ...] = ()
    page: str = ""

    def named_by(self, field: str, lines: Sequence[str], data_config: DataConfig) -> Sequence[Any]:
        """Returns what a user's lines beside a text name, or the lines where they are texts.

        Raises:
          DataError: If one cannot be read.
        """
        return self.beside[field](lines, data_config) if field in self.beside else lines

    @property
    def input_fields(self) -> tuple[Field, ...]:
        """The fields of a text whose output is searched for."""
        known = tuple(field for field in self.fields if field.is_input)
        return known if self.inputs is None else self.inputs


def find_task(data_config: DataConfig, model_config: Any = None) -> Task:
    """Returns the task for which a model is trained on a data set.

    Args:
      data_config: Config of the data set, whose `task` is the name of one.
      model_config: Config of the model. If it has a `task`, it is the only one the model can do.

    Raises:
      ConfigError: If there is no task of that name.
    """
    name = getattr(model_config, "task", data_config.task)
    if name not in TASKS:
        raise ConfigError(
            f"config.data.name: expected data of a task among {', '.join(TASKS.names())}, found "
            f"{name!r}"
        )
    task, further = TASKS.find(name).TASK, data_config.further_sources
    if task.inputs is not None or not further:
        return task
    return dataclasses.replace(task, fields=(*task.fields, *map(text_source, further)))


def further_fields(task: Task, names: Iterable[str]) -> list[Field]:
    """Returns the fields of `data/fields` that are needed beside those of a task.

    Args:
      task: The task of the batches.
      names: Names of all arrays that a model and its objectives read, also of masks and of the
        task's own fields.

    Raises:
      ConfigError: If there is no such field.
    """
    found: list[Field] = []
    own = {name for field in (*task.fields, *task.input_fields) for name in field.names}
    for name in sorted(set(names)):  # an array before its mask, which it brings along
        if name in own:
            continue
        if name not in FIELDS:
            known = ", ".join(sorted({*own, *FIELDS.names()}))
            raise ConfigError(
                f"config.data.name: expected data with a field {name!r}, which the model or an "
                f"objective reads, found those of {task.label}: {known}"
            )
        found.append(FIELDS.find(name).FIELD)
        own.update(found[-1].names)
    return found


def by_name(metrics: Sequence[Metric]) -> Mapping[str, Metric]:
    """Returns metrics by their names."""
    return {metric.name: metric for metric in metrics}
