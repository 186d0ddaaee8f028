"""Start report: what a training says before its first step, with notices of likely mistakes."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attention_jax.data.buckets import Bucket
from attention_jax.data.field import SOURCE
from attention_jax.data.lines import MAX_LINE_CHARACTERS
from attention_jax.data.loading import TaskData
from attention_jax.data.text.vocabulary import SUBWORDS
from attention_jax.devices.memory_per_device import sharding_line
from attention_jax.devices.mesh import BATCH_AXES
from attention_jax.runs.config import TrainingConfig
from attention_jax.runs.diagnoses import diagnosed
from attention_jax.runs.length_limits import FORWARD
from attention_jax.runs.progress import format_seconds
from attention_jax.search.training_lengths import DEFAULT, Longest, forbidden, is_unusual
from attention_jax.training.assembly import Assembly
from attention_jax.updates.averaging import CheckpointAverage
from attention_jax.updates.schedules import Schedule

_MOST_FILLED = 1.1  # rows that are computed, for each that is an example
_FEWEST_TOKENS = 3  # of a mean target, from which there is anything to learn


def start_lines(
    parts: Assembly,
    parameters: int,
    sharding: Mapping[str, Any],
    *,
    step: int,
    seconds: float,
    settings: TrainingConfig,
) -> Iterator[str]:
    """Yields the sizes of data and model, notices of what may surprise, and what compiles now.

    Args:
      parts: The training.
      parameters: Number of scalar parameters of the model.
      sharding: How they are spread over devices, from `describe_sharding`.
      step: Updates made so far.
      seconds: Training time spent on them.
      settings: Lengths and intervals of the training.
    """
    task, total = parts.task, parts.total_steps
    yield (
        f"{len(task.split('train')) - parts.batches.dropped:,} training examples, "
        f"{_vocabularies(task)}, {parameters:,} parameters, {total:,} steps"
    )
    yield sharding_line(sharding)
    if step:
        yield f"continuing after step {step} ({format_seconds(seconds)} so far)"
    if step >= total:
        return
    yield from _left_out(parts)
    yield from _filled_up(parts.batches.buckets, sharding["mesh"], settings.accumulate_steps)
    yield from _small_validation(parts)
    yield from _short_targets(parts)
    yield from _forbidden(parts)
    yield from _shorter_length(parts, settings)
    yield from _never_begun(parts, settings)
    yield from _few_checkpoints(settings, total)
    yield from _long_warmup(parts.schedule)
    log_every_steps = settings.log_every_steps
    # The next multiple of the distance, as the meter's windows end.
    first = min((step // log_every_steps + 1) * log_every_steps, total)
    yield f"compiling the update for {_shapes(parts.batches.buckets)}; step {first} is shown next"


def _vocabularies(task: TaskData) -> str:
    """Says how large the vocabularies are; names of pictures or of recordings need none."""
    source, target = task.source_vocabulary.size, task.target_vocabulary.size
    has_tokens = all(
        np.issubdtype(field.dtype, np.integer)
        for field in task.task.fields
        if field.name == SOURCE.name
    )
    if not has_tokens:
        return f"a vocabulary of {target:,} tokens"
    return f"vocabularies of {source:,} and {target:,} tokens"


def _left_out(parts: Assembly) -> Iterator[str]:
    """Yields notices of training pairs that are left out."""
    pairs, too_long = len(parts.task.split("train")), parts.batches.dropped
    if parts.unusable:
        yield (
            f"notice: left out {parts.unusable:,} pairs of the training text with an empty side or "
            f"one of more than {MAX_LINE_CHARACTERS:,} characters"
        )
    if too_long:
        yield (
            f"notice: left out {too_long:,} of {pairs:,} training pairs with more tokens than "
            "config.data.max_source_length or max_target_length"
        )


def _filled_up(
    buckets: Sequence[Bucket], mesh: Mapping[str, int], accumulate_steps: int
) -> Iterator[str]:
    """Yields a notice if many rows of batches are fillers, so that devices share them evenly."""
    shares = math.prod(mesh[axis] for axis in BATCH_AXES) * accumulate_steps
    rows, computed = max(
        ((bucket.rows, bucket.rows + -bucket.rows % shares) for bucket in buckets),
        key=lambda pair: pair[1] / pair[0],
    )
    if computed > _MOST_FILLED * rows:
        yield (
            f"notice: batches of {rows:,} examples are filled up to {computed:,} rows, which "
            f"{shares:,} parts share; config.data.batch_size is best a multiple of {shares:,}"
        )


def _small_validation(parts: Assembly) -> Iterator[str]:
    """Yields what is wrong before anything has been measured: a validation of few examples."""
    rows = max(bucket.rows for bucket in parts.batches.buckets)
    sizes = {"validation/examples": len(parts.task.split("validation")), "training/batch": rows}
    for _, line in diagnosed(sizes, 0.0):
        yield line


def _short_targets(parts: Assembly) -> Iterator[str]:
    """Yields a notice of targets that subwords have made too short to learn anything from."""
    lengths, vocabulary = parts.lengths[1], parts.task.target_vocabulary
    if vocabulary.kind != SUBWORDS or not len(lengths):
        return
    mean = lengths.mean() - 1  # without EOS
    if mean < _FEWEST_TOKENS:
        yield (
            f"notice: a mean target has {mean:.1f} tokens; whole clauses become subwords where a "
            "script writes no spaces between words, or where config.data.subwords.size "
            f"({vocabulary.size:,}) is too much for the text: config.data.subwords.kind=characters"
        )


def _forbidden(parts: Assembly) -> Iterator[str]:
    """Yields notices of training targets that the search's length limits forbid.

    Also says so where the limits were raised for the sake of such targets.
    """
    search, (sources, targets) = parts.search, parts.lengths
    fields = (
        f"min_length_ratio ({search.min_length_ratio:g}) and min_length_constant "
        f"({search.min_length_constant})",
        f"max_length_factor ({search.max_length_factor:g}) and max_length_constant "
        f"({search.max_length_constant})",
    )
    advice = ("choose less, 0 for no limit", "by default they follow the training targets")
    counts = forbidden(search, sources, targets)
    for field, count, long, text in zip(fields, counts, ("short", "long"), advice, strict=True):
        if is_unusual(count, len(targets)):
            yield (
                f"notice: {count:,} of {len(targets):,} training targets are too {long} for "
                f"config.search.{field}, so that outputs like them are never found; {text}"
            )
    if Longest.of(search) == parts.limits[FORWARD] != DEFAULT:
        yield f"notice: as training targets are, outputs may be long: config.search.{fields[1]}"


def _shorter_length(parts: Assembly, settings: TrainingConfig) -> Iterator[str]:
    """Yields a notice if `num_steps` and `num_epochs` are both set: the longer has no effect."""
    lengths = settings.lengths(parts.batches.batches_per_epoch)
    shorter, longer = (choose(lengths, key=lengths.__getitem__) for choose in (min, max))
    if lengths[shorter] < lengths[longer]:
        yield (
            f"notice: training ends with config.training.{shorter}, after {lengths[shorter]:,} "
            f"steps; its {longer} would be {lengths[longer]:,}"
        )


def _never_begun(parts: Assembly, settings: TrainingConfig) -> Iterator[str]:
    """Yields notices of objectives and freezing that would begin after the end of training."""
    begins = {
        f"objectives.{name}.schedule": term.schedule.start_steps
        for name, term in parts.objective.terms.items()
    }
    for group, start in {**begins, "training.freezing": settings.freezing.start_steps}.items():
        if start >= parts.total_steps:
            yield (
                f"notice: config.{group}.start_steps is {start:,}, but training ends after "
                f"{parts.total_steps:,} steps, so that it never begins"
            )


def _few_checkpoints(settings: TrainingConfig, total: int) -> Iterator[str]:
    """Yields a notice if checkpoint averaging wants more checkpoints than will be saved."""
    every = settings.checkpoint_every_steps
    # The last step is saved too, hence the ceiling.
    saved = math.ceil(total / every) if every else 1
    if isinstance(settings.averaging, CheckpointAverage) and saved < settings.averaging.count:
        yield (
            f"notice: config.training.averaging.count is {settings.averaging.count}, but "
            f"checkpoint_every_steps ({every:,}) saves {saved:,} in {total:,} steps, which are "
            "averaged"
        )


def _long_warmup(schedule: Schedule) -> Iterator[str]:
    """Yields a notice if the warm-up of the learning rate takes most of the training."""
    rise, total = schedule.warmup_steps, schedule.clock.total_steps
    if 2 * rise > total:
        in_epochs = getattr(schedule.config, "warmup_epochs", 0.0) > 0.0
        field = f"config.schedule.{'warmup_epochs' if in_epochs else 'warmup_steps'}"
        yield (
            f"notice: the learning rate rises for {rise:,} of {total:,} steps; lower "
            f"{field} to a tenth of the steps, or train longer"
        )


def _shapes(buckets: Sequence[Bucket]) -> str:
    ordered = sorted(buckets, key=lambda bucket: (bucket.target_length, bucket.source_length))
    first, last = (
        f"{bucket.rows} x {bucket.source_length} x {bucket.target_length}"
        for bucket in (ordered[0], ordered[-1])
    )
    number = f"{len(ordered)} batch shapes, {first} to {last}"
    if len(ordered) == 1:
        number = f"1 batch shape, {first}"
    return f"{number} (examples x source x target tokens)"
