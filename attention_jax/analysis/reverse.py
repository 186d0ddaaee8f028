"""Reverse direction of a bidirectional model, as a run and a task of their own.

Whatever takes a run can thus be applied from target to source. The attention of both directions to
the same pairs is `forced_attention(run, split)`, `T S` each, and
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
    """Reverse direction: returns the run of the reverse model, with its half of the parameters.

    It keeps the objectives that trained it. Those that compare both directions are left out, and
    those of alignment, which supervise the forward model only.

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
    # The lengths of outputs are limited by what training saw, which differs by direction.
    search = with_limits(run.config.search, recorded_limits(run.directory), REVERSE)
    search = dataclasses.replace(search, shortlist=0)  # the lexicon is of the other direction
    return dataclasses.replace(
        run,
        config=dataclasses.replace(run.config, objectives=own, search=search),
        source_vocabulary=run.target_vocabulary,
        target_vocabulary=run.source_vocabulary,
        model=run.model.reverse,
        params=run.params["reverse"],
        shardings=dataclasses.replace(run.shardings, params=params),
        resources={},
        is_reverse=True,
    )


def reverse_split_name(name: str) -> str:
    """Returns the name of the reverse of a split."""
    return f"{name}.reverse"


def reverse_split(split: Split) -> Split:
    """Reverse direction: swaps the sides of a split, and names it `NAME.reverse`.

    Each target then has its source as its only reference.
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
    """Reverse direction: swaps the sides of all splits of a task, which get new names."""
    splits = map(reverse_split, task.splits.values())
    return dataclasses.replace(
        task,
        source_vocabulary=task.target_vocabulary,
        target_vocabulary=task.source_vocabulary,
        splits={split.name: split for split in splits},
    )
