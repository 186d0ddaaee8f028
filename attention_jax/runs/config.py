"""The config of an experiment: everything that decides what a run computes, as frozen dataclasses.

A file in `configs/` returns a ConfigDict; `from_config_dict` checks it and turns it into an
`ExperimentConfig`, whose plain form is a run's `config.json`.
"""

import dataclasses
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from ml_collections import ConfigDict, config_dict

from attention_jax import models
from attention_jax.config_choices import Choices
from attention_jax.config_walk import Group, NamedConfigs, resolve
from attention_jax.configuration import plain, setting, typed
from attention_jax.data.config import data_config_class
from attention_jax.data.field import SOURCE
from attention_jax.data.task import Task, find_task, further_fields
from attention_jax.devices.config import ShardingConfig
from attention_jax.errors import ConfigError, SettingError
from attention_jax.objectives import Objective, build_objective
from attention_jax.objectives.compose import OBJECTIVES
from attention_jax.runs.run_directory import RunDirectory
from attention_jax.runs.writers import WRITERS
from attention_jax.search.config import SearchConfig
from attention_jax.updates import averaging as averages
from attention_jax.updates import decays, optimizers, plateau, schedules
from attention_jax.updates.averaging import Averaging, CheckpointAverage, NoAveraging
from attention_jax.updates.freezing import Freezing


@dataclasses.dataclass(frozen=True)
class TrainingConfig:
    """How long to train, what to watch and what to keep.

    Attributes:
      num_steps: Length of training in updates; this or `num_epochs` must be set.
      num_epochs: Length of training in passes over the data; with both, the shorter one counts.
      initial_weights: A safetensors file of parameters to start from, as `launch.weights` writes
        it; empty to draw them.
      accumulate_steps: Gradient accumulation: parts into which a batch is split to save memory.
        Filler rows make the parts equally large, whatever the batch size.
      averaging: Which parameters are evaluated: those of the best step, or an average.
      freezing: Which parameters keep their values for a while.
      log_every_steps: Steps between lines in `metrics.jsonl` and on the screen.
      evaluate_every_steps: Steps between validations; 0 validates at the end only.
      checkpoint_every_steps: Steps between checkpoints. The best validated step is saved too, and
        so is the last one; 0 saves no others.
      keep_latest: Newest checkpoints to keep; with averaging `checkpoints`, of those that are
        averaged.
      keep_best: Checkpoints with the best metric to keep.
      metric: Validation metric that decides which checkpoint is best, and when to stop. Steps are
        compared only once every objective is switched on and no parameter will be frozen or
        released any more. With averaging `checkpoints`, the best one is kept but not evaluated.
      mode: Whether a good metric is low (`min`) or high (`max`, as for BLEU).
      patience: Early stopping: validations without improvement after which training stops. 0 never
        stops early, and is the only choice with averaging `checkpoints`.
      max_gradient_ratio: An update is skipped if the norm of its gradient is more than so many
        times the median of the last 64; 0 skips none.
      max_consecutive_nonfinite: Training stops after so many skipped updates in a row, whose
        gradients were not finite or stood out.
      writers: Where metrics go besides `metrics.jsonl`: files of the package `writers`.
    """

    num_steps: int | None = setting(None, at_least=1)
    num_epochs: float | None = setting(None, above=0.0)
    initial_weights: str = setting("", is_file=True)
    accumulate_steps: int = setting(1, at_least=1)
    averaging: Averaging = setting(NoAveraging(), named=averages.lookup)
    freezing: Freezing = setting(Freezing())
    log_every_steps: int = setting(50, at_least=1)
    evaluate_every_steps: int = setting(500, at_least=0)
    checkpoint_every_steps: int = setting(500, at_least=0)
    keep_latest: int = setting(2, at_least=1)
    keep_best: int = setting(1, at_least=1)
    metric: str = setting("nll")
    mode: str = setting("min", choices=("min", "max"))
    patience: int = setting(0, at_least=0)
    max_gradient_ratio: float = setting(0.0, at_least=0.0)
    max_consecutive_nonfinite: int = setting(10, at_least=1)
    writers: tuple[str, ...] = setting((), choices=WRITERS)

    def __post_init__(self):
        if self.num_steps is None and self.num_epochs is None:
            raise ValueError("num_steps: expected this or num_epochs to be set, found neither")
        if self.patience and not self.evaluate_every_steps:
            raise ValueError(
                f"patience: expected 0 where evaluate_every_steps is 0, found {self.patience}"
            )
        if self.patience and isinstance(self.averaging, CheckpointAverage):
            raise ValueError(
                "patience: expected 0 where averaging.name is 'checkpoints', since the newest "
                f"checkpoints are averaged and not those around the best, found {self.patience}"
            )
        if 0.0 < self.max_gradient_ratio <= 1.0:
            raise ValueError(
                "max_gradient_ratio: expected more than 1, or 0 to skip no update, found "
                f"{self.max_gradient_ratio}"
            )
        if len(set(self.writers)) < len(self.writers):
            raise ValueError(f"writers: expected every one once, found {self.writers}")
        # An average of more checkpoints than are kept would silently be one of fewer.
        count = getattr(self.averaging, "count", 1)
        if self.keep_latest < count:
            raise ValueError(
                f"keep_latest: expected at least averaging.count ({count}), "
                f"found {self.keep_latest}"
            )

    def lengths(self, steps_per_epoch: int) -> dict[str, int]:
        """Returns the lengths that the config sets, in updates, by their field."""
        lengths = {} if self.num_steps is None else {"num_steps": self.num_steps}
        if self.num_epochs is not None:
            lengths["num_epochs"] = max(1, round(self.num_epochs * steps_per_epoch))
        return lengths

    def total_steps(self, steps_per_epoch: int) -> int:
        """Returns the length of training in updates: the shorter one where both are set."""
        return min(self.lengths(steps_per_epoch).values())


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """What is decoded and drawn, during training and after it.

    Attributes:
      splits: Splits that are evaluated after training.
      num_validation_examples: Validation examples decoded at each validation, which makes error
        rates or BLEU available to `training.metric`; 0 measures the loss only, -1 decodes all.
      num_heat_maps: Attention maps drawn for each split.
    """

    splits: tuple[str, ...] = setting(("validation", "test"))
    num_validation_examples: int = setting(0, at_least=-1)
    num_heat_maps: int = setting(4, at_least=0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExperimentConfig:
    """The config of a whole experiment, resolved and checked.

    Attributes:
      data: Task, vocabulary and batches.
      model: The network.
      objectives: Terms of the loss by their names.
      optimizer: The update rule.
      schedule: The learning rate over time.
      training: Length, validation, checkpoints.
      sharding: How training is spread over devices.
      search: How outputs are searched for.
      evaluation: What is decoded and drawn.
      seed: Root of all randomness.
    """

    data: Any = setting(named=data_config_class)
    model: Any = setting(named=models.MODELS.config)
    objectives: Mapping[str, Any] = setting({"nll": {}}, members=OBJECTIVES.config)
    optimizer: Any = setting(optimizers.Adam(), named=optimizers.lookup)
    schedule: Any = setting(decays.Constant(), named=schedules.lookup)
    training: TrainingConfig = setting()
    sharding: ShardingConfig = setting(ShardingConfig())
    search: SearchConfig = setting(SearchConfig())
    evaluation: EvaluationConfig = setting(EvaluationConfig())
    seed: int = setting(0, at_least=0, at_most=2**32 - 1)

    def __post_init__(self):
        known = ("train", "validation", "test", *self.data.further_splits)
        for index, split in enumerate(self.evaluation.splits):
            if split not in known:
                raise ValueError(
                    f"evaluation.splits[{index}]: expected one of {', '.join(known)}, found "
                    f"{split!r}"
                )
        if self.search.replace_unknown and not any(
            field.is_text for field in self.task.input_fields
        ):
            raise SettingError(
                "search.replace_unknown: expected sources of words, with which unknown ones could "
                f"be replaced, found data of {self.task.label}"
            )
        watches = isinstance(self.schedule, plateau.Plateau)
        if watches and not self.training.evaluate_every_steps:
            raise ValueError(
                "training.evaluate_every_steps: expected more than 0 with the schedule 'plateau', "
                "which waits for validations, found 0"
            )

    @property
    def task(self) -> Task:
        """The task, which follows from the data and from what the model reads."""
        return find_task(self.data, self.model)


def from_config_dict(values: Mapping[str, Any] | ConfigDict) -> ExperimentConfig:
    """Checks a config and turns it into frozen dataclasses.

    Args:
      values: A ConfigDict, or the content of a run's `config.json`.

    Raises:
      ConfigError: Naming the first field that is wrong, what was expected and what was found.
    """
    config = typed(ExperimentConfig, values)
    objective = build_objective(config.objectives)
    _check_sources(config)
    further_fields(find_task(config.data), objective.fields)  # for its error on unknown fields
    _check_links(config, objective)
    _check_lexicon(config)
    _check_steps(config)
    _check_continues(config)
    return config


def recorded_config(directory: RunDirectory) -> ExperimentConfig:
    """Returns the config that a run directory holds.

    Raises:
      ConfigError: As `from_config_dict`, with the file: a part of the user's own may be gone.
    """
    try:
        return from_config_dict(directory.read_config() or {})
    except ConfigError as error:
        raise ConfigError(f"{directory.config}: {error}") from None


def _check_sources(config: ExperimentConfig) -> None:
    """Raises ConfigError where the model does not read what sources of the data are."""
    task, wanted = config.task, getattr(config.model, "source_form", "sequence")
    if task.source_form != wanted:
        raise ConfigError(
            f"config.model.name: expected a model that reads a {task.source_form}, as sources of "
            f"the task of {task.label} are, found {config.model.name!r}, which reads a {wanted}"
        )


def _check_links(config: ExperimentConfig, objective: Objective) -> None:
    """Checks that word alignments are configured if, and only if, an objective needs them.

    It needs none of data that bring links of their own.
    """
    data, needs_links = config.data, "links" in objective.fields
    are_brought = needs_links and data.brings_links
    if are_brought and objective.inherits_by_word:
        raise ConfigError(
            "config.objectives: expected unaligned='inherit' or 'ignore' beside the links that "
            f"{data.name!r} brings, which are of tokens, not of words, found 'inherit_by_word'"
        )
    needs_alignment, method = needs_links and not are_brought, data.alignment.method
    if needs_alignment == (method != "none"):
        return
    if "alignment" not in {field.name for field in dataclasses.fields(data)}:
        raise ConfigError(
            "config.data.name: expected data with links of their own, or between whose words they "
            f"can be looked for, as an objective needs them, found {data.name!r}"
        )
    wanted = "word alignments, which an objective needs"
    if not needs_alignment:
        wanted = "'none', for no objective needs word alignments"
    raise ConfigError(f"config.data.alignment.method: expected {wanted}, found {method!r}")


def _check_lexicon(config: ExperimentConfig) -> None:
    """Raises ConfigError where a lexicon is read and there is none, or none can be read."""
    readout, lexicon = getattr(config.model, "readout", None), config.data.lexicon
    shortlist, task = config.search.shortlist, config.task
    is_read = getattr(readout, "reads_lexicon", False)
    # A shortlist may be asked for whenever something is searched.
    is_translated = SOURCE in task.fields and not task.continues
    is_listed = is_translated and getattr(readout, "takes_shortlist", False)
    if shortlist and not is_listed:
        raise ConfigError(
            "config.search.shortlist: expected 0 but for models that write translations of their "
            f"source's tokens with the readout 'softmax', found {shortlist}"
        )
    if (is_read or shortlist) and not lexicon.is_given:
        reader = f"the readout {readout.name!r}" if is_read else f"search.shortlist={shortlist}"
        raise ConfigError(
            "config.data.lexicon.method: expected a method, or a file beside it, for "
            f"{reader}, found neither"
        )
    if shortlist > lexicon.size:
        raise ConfigError(
            f"config.search.shortlist: expected at most data.lexicon.size, {lexicon.size}, found "
            f"{shortlist}"
        )
    if lexicon.is_given and not (is_read or is_listed):
        field = "method" if lexicon.method != "none" else "file"
        raise ConfigError(
            f"config.data.lexicon.{field}: expected none, for the readout reads no lexicon, found "
            f"{getattr(lexicon, field)!r}"
        )


def _check_steps(config: ExperimentConfig) -> None:
    """Raises ConfigError where STEPs of the targets are to move attention and there are none."""
    attention = getattr(config.model, "attention", None)
    if getattr(attention, "reads_steps", False) and config.data.oracle_steps == "none":
        raise ConfigError(
            f"config.model.attention.name: expected data whose targets have STEPs for "
            f"{attention.name!r}, such as inflections with config.data.oracle_steps=hmm, found none"
        )


def _check_continues(config: ExperimentConfig) -> None:
    """Raises ConfigError where texts are to be continued by a model that reads a source."""
    if find_task(config.data).continues and not hasattr(config.model, "task"):
        raise ConfigError(
            f"config.model.name: expected a language model for the texts of {config.data.name!r}, "
            f"which have no sources, found {config.model.name!r}"
        )


def to_plain(config: ExperimentConfig) -> dict[str, Any]:
    """Returns the config as `config.json` holds it; `from_config_dict` reads it back."""
    return plain(config)


class PartGroup(ConfigDict):
    """A config group that holds any number of parts by name, such as `objectives`."""


def template(
    values: Mapping[str, Any] | ConfigDict, choices: Choices | None = None
) -> ConfigDict:
    """Completes a config with the defaults of all fields, so that flags can override any of them.

    Values are not checked; a field without one becomes a placeholder.

    Args:
      values: A ConfigDict or mapping as a config file returns it.
      choices: Parts to choose instead of those in `values`. Fields of the old part that the new
        one does not have are dropped.

    Raises:
      ConfigError: If there is no such field or part.
    """
    return _filled(resolve(ExperimentConfig, values, "config", choices or Choices()))


def complete(cls: type, values: Mapping[str, Any] | ConfigDict, where: str) -> ConfigDict:
    """Completes one group of a config, such as `search`, as `template` does the whole."""
    return _filled(resolve(cls, values, where, Choices()))


def names_part(values: ConfigDict, path: str) -> bool:
    """Whether a field's path, without `config`, names a whole part, which `Choices` handle."""
    *parents, _ = path.split(".")
    group: Any = values
    for name in parents:
        group = group.get(name) if isinstance(group, ConfigDict) else None
    return isinstance(group, PartGroup)


def present_path(path: str) -> str:
    """Returns the present path of a field that finished runs may have under an old name."""
    for name in models.MODELS.names():
        for old, new in getattr(models.MODELS.config(name), "RENAMED", {}).items():
            old, new = f"model.{old}", f"model.{new}"
            if path == old or path.startswith(f"{old}."):
                return new + path.removeprefix(old)
    return path


# Fields that may change when a run is resumed: none of them alters an update that was made.
_MAY_CHANGE = (
    "training.num_steps",
    "training.num_epochs",
    "training.log_every_steps",
    "training.evaluate_every_steps",
    "training.checkpoint_every_steps",
    "training.keep_latest",
    "training.keep_best",
    "training.patience",
    "training.max_consecutive_nonfinite",
    "sharding",
    "training.writers",
    "data.bleu_tokenizer",
    "search",
    "evaluation",
)


def changed_fields(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Compares two plain configs: the fields that differ, as path -> (old value, new value)."""
    old_leaves, new_leaves = dict(_leaves(old)), dict(_leaves(new))
    return {
        path: (old_leaves.get(path), new_leaves.get(path))
        for path in sorted(old_leaves.keys() | new_leaves.keys())
        if old_leaves.get(path) != new_leaves.get(path)
    }


def may_change(path: str, watched: Sequence[str] = ()) -> bool:
    """Returns whether a run may be resumed with another value of the field.

    A longer training stretches, from then on, a schedule that depends on the length.

    Args:
      path: The field's path, without `config`.
      watched: Groups and fields that may not change in this run, since the metric that it watches
        depends on them; see `early_stopping.watched_fields`.
    """
    return _is_of(path, _MAY_CHANGE) and not _is_of(path, watched)


def _is_of(path: str, groups: Sequence[str]) -> bool:
    return any(path == group or path.startswith(group + ".") for group in groups)


def _filled(group: Group) -> ConfigDict:
    """Turns a walked config into a ConfigDict whose fields have fixed types, where known."""
    hints = typing.get_type_hints(group.cls)
    # Nested mappings are converted here, so that groups of parts become `PartGroup`.
    result = ConfigDict(convert_dict=False)
    for field in dataclasses.fields(group.cls):
        if field.init:
            value = group.values[field.name]
            is_parts = "members" in field.metadata
            result[field.name] = _filled_value(value, hints[field.name], is_parts)
    return result


def _filled_value(value: Any, hint: Any, is_parts: bool) -> Any:
    if isinstance(value, Group):
        return _filled(value)
    if isinstance(value, NamedConfigs):
        members = {name: _filled_value(each, Any, False) for name, each in value.items()}
        return (PartGroup if is_parts else ConfigDict)(members, convert_dict=False)
    if value is None:
        # None has no type that overrides could be checked against; a placeholder has.
        return config_dict.placeholder(_scalar_type(hint))
    if isinstance(value, list):
        return tuple(value)
    return ConfigDict(value) if isinstance(value, dict) else value


def _scalar_type(hint: Any) -> type:
    # `int | None` has the arguments int and NoneType; a plain type has none.
    kinds = [kind for kind in typing.get_args(hint) or (hint,) if kind is not type(None)]
    if Any in kinds:
        return ConfigDict
    return kinds[0] if kinds and isinstance(kinds[0], type) else str


def _leaves(values: Any, path: str = "") -> list[tuple[str, Any]]:
    if isinstance(values, Mapping):
        return [
            leaf
            for name, value in values.items()
            for leaf in _leaves(value, f"{path}.{name}" if path else name)
        ]
    return [(path, list(values) if isinstance(values, tuple) else values)]
