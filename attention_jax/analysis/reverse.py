"""The reverse direction of a run whose model goes both ways, as a run and a task of their own.

Whatever takes a run then works from target to source. The attention of both directions to the
same pairs is `forced_attention(run, split)`, `T S` each, and
`forced_attention(reverse_run(run), reverse_split(split))`, `S T` each.
"""

import dataclasses

from attention_jax.data.examples import Split
from attention_jax.data.loading import TaskData
from attention_jax.errors import UserError
from attention_jax.objectives.term import needs_of
from attention_jax.runs.length_limits import REVERSE, recorded_limits, with_limits
from attention_jax.runs.load import TrainedRun
from attention_jax.types import BidirectionalModel


def reverse_run(run: TrainedRun) -> TrainedRun:
    """Returns the run of the reverse model, with its share of the parameters.

    Of the objectives, those remain that taught it: not those of both directions, nor those of
    attention, which are of the forward model's.

    Raises:
      UserError: If the run's model goes from source to target only.
    """
    if not isinstance(run.model, BidirectionalModel):
        raise UserError(
            f"{run.directory.path}: expected a run with a reverse direction, as with "
            f"config.model.name='bidirectional', found {run.config.model.name!r}"
        )
    terms = run.config.objectives.items()
    of_both = {"reverse", "alignment"}
    own = {name: term for name, term in terms if not of_both & set(needs_of(term))}
    params = run.shardings.params["reverse"]
    search = with_limits(run.config.search, recorded_limits(run.directory), REVERSE)
    return dataclasses.replace(
        run,
        config=dataclasses.replace(run.config, objectives=own, search=search),
        source_vocabulary=run.target_vocabulary,
        target_vocabulary=run.source_vocabulary,
        model=run.model.reverse,
        params=run.params["reverse"],
        shardings=dataclasses.replace(run.shardings, params=params),
        is_reverse=True,
    )


def reverse_split_name(name: str) -> str:
    """Returns what the reverse of a split is called."""
    return f"{name}.reverse"


def reverse_split(split: Split) -> Split:
    """Returns the pairs of a split from target to source, named `NAME.reverse`.

    The only reference of each target is its source.
    """
    return Split(
        sources=split.targets,
        targets=split.sources,
        references=[[source] for source in split.sources],
        numbers=split.numbers,
        name=reverse_split_name(split.name),
        source_vocabulary=split.target_vocabulary,
        target_vocabulary=split.source_vocabulary,
    )


def reverse_task(task: TaskData) -> TaskData:
    """Returns a task whose splits are those of `reverse_split`, by their new names."""
    splits = map(reverse_split, task.splits.values())
    return dataclasses.replace(
        task,
        source_vocabulary=task.target_vocabulary,
        target_vocabulary=task.source_vocabulary,
        splits={split.name: split for split in splits},
    )
