"""Tasks: what there is to learn, which fields its batches have, and how outputs are judged.

A task is a file of `data/tasks` that defines a `TASK`, and is found by its name. A data set says in
its config which task it is; a model that can do only one, such as a language model, says so itself.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from attention_jax.data.config import DataConfig
from attention_jax.data.examples import Split
from attention_jax.data.field import SOURCE, TARGET, Field
from attention_jax.discovery import Parts
from attention_jax.errors import ConfigError
from attention_jax.spaced_words import strip_spaces

TASKS = Parts("attention_jax.data.tasks", defines="TASK")
FIELDS = Parts("attention_jax.data.fields", defines="FIELD")

Scores = dict[str, float | str]
Scorer = Callable[[Split, Sequence[str], DataConfig], Scores]
# What a metric needs of each sentence, and how sums of that are scored.
Statistics = dict[str, tuple[np.ndarray, Callable[[np.ndarray], Any]]]


@dataclasses.dataclass(frozen=True)
class Metric:
    """A number that outputs are judged by while a model trains.

    Attributes:
      name: As in `metrics.jsonl` and `results.json`.
      label: What pictures call it.
      panel: The axis that it is drawn on, beside others of its kind.
      better: Whether a good one is low (`min`) or high (`max`).
      decided_by: Fields of the config that decide what it measures, beside the search's.
    """

    name: str
    label: str
    panel: str
    better: str
    decided_by: tuple[str, ...] = ()


def prepare(text: str, data_config: DataConfig, *, is_source: bool = True) -> str:
    """Brings a text of the user into the form of the data set's sources, or of its targets."""
    text = strip_spaces(text.strip("\r\n"))
    return text.lower() if data_config.lowercase else text


@dataclasses.dataclass(frozen=True, kw_only=True)
class Task:
    """What is done with the examples of a data set.

    Attributes:
      label: What examples are examples of, in messages and in the hash of the data.
      fields: What batches hold of each example.
      inputs: What they hold of a text whose output is to be found; None for those fields that are
        known before the output is.
      input_side: Whose vocabulary such a text is in, `source` or `target`.
      continues: Whether an output goes on from its input, which may be empty, and in which every
        word must be one of the vocabulary. Such outputs are not judged: losses are measured alone.
      prepare: Brings a text of the user into the form of the data.
      scores: Compares outputs with references: the metrics by name, of which those whose name ends
        in `_signature` are text; None for no comparison.
      details: What else outputs are asked once training is over.
      attention_scores: What their attention is asked; takes the hypotheses of each example, best
        first, in place of the outputs.
      statistics: What two runs are compared by.
      metrics: Those of `scores` that a training may watch, in the order in which they are drawn.
      printed: Names of those that are printed at every validation.
      shown: Names of results that are shown at the end.
      finds_dropped_words: Whether words that an aligner finds no counterpart of are missing ones.
    """

    label: str
    fields: tuple[Field, ...] = (SOURCE, TARGET)
    inputs: tuple[Field, ...] | None = None
    input_side: str = "source"
    continues: bool = False
    prepare: Callable[..., str] = prepare
    scores: Scorer | None = None
    details: Scorer | None = None
    attention_scores: Callable[[Split, Sequence[Sequence[Any]], DataConfig], Scores] | None = None
    statistics: Callable[[Split, Sequence[str], DataConfig], Statistics] | None = None
    metrics: tuple[Metric, ...] = ()
    printed: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    finds_dropped_words: bool = False

    @property
    def input_fields(self) -> tuple[Field, ...]:
        """What batches hold of a text whose output is to be found."""
        known = tuple(field for field in self.fields if field.is_input)
        return known if self.inputs is None else self.inputs


def find_task(data_config: DataConfig, model_config: Any = None) -> Task:
    """Returns the task that a model is trained for on a data set.

    Args:
      data_config: Of the data set; its `task` is the name of one.
      model_config: Of the model; its `task`, if it has one, is the only one that it can do.

    Raises:
      ConfigError: If there is none such.
    """
    name = getattr(model_config, "task", data_config.task)
    if name not in TASKS:
        raise ConfigError(
            f"config.data.name: expected data of a task among {', '.join(TASKS.names())}, found "
            f"{name!r}"
        )
    return TASKS.find(name).TASK


def further_fields(task: Task, names: Iterable[str]) -> list[Field]:
    """Returns the fields of `data/fields` that somebody needs and a task lacks.

    Args:
      task: Whose batches they are for.
      names: Of all arrays that are needed, those of the task and masks among them.

    Raises:
      ConfigError: If there is no such field.
    """
    found: list[Field] = []
    own = {name for field in (*task.fields, *task.input_fields) for name in field.names}
    for name in sorted(set(names)):  # an array before its mask
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
