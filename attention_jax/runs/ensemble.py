"""Ensembles of trained runs: several runs as one, which whatever takes a run can be given."""

import dataclasses
import os
from collections.abc import Sequence

import numpy as np

from attention_jax.data.lexicon import LEXICON, LEXICON_FILE
from attention_jax.data.task import further_fields
from attention_jax.errors import UserError
from attention_jax.models.ensemble import Ensemble, name_of
from attention_jax.objectives.term import needs_of
from attention_jax.runs.hashes import hash_files
from attention_jax.runs.load import TrainedRun


def ensemble_of(runs: Sequence[TrainedRun], combination: str = "log_linear") -> TrainedRun:
    """Ensemble: joins runs to one that predicts with all of their models.

    The first run gives the config, and the place of results, `evaluations/ensemble_...`. Attention
    is averaged over the runs that learnt to align as the first did: at the same step, and by an
    aligner of their own if it has one.

    Args:
      runs: The runs; one alone is returned as it is.
      combination: `log_linear` or `mean`; see `ops.ensemble_predictions`.

    Raises:
      UserError: If their tasks, their vocabularies or what they copy are not the same, or one reads
        a source that the first knows nothing of.
    """
    first, *others = runs
    if not others:
        return first
    for other in others:
        _check(first, other)
    ways = [(run.alignment_shift, run.has_aligner) for run in runs]
    attending = tuple(m for m, way in enumerate(ways) if way == ways[0])
    model = Ensemble(tuple(run.model for run in runs), combination, attending)
    # What only one of the models computes, such as coverage, no objective can measure of all.
    objectives = {
        name: term
        for name, term in first.config.objectives.items()
        if {*needs_of(term)} <= {*model.provides}
    }
    placements = {name_of(m): run.shardings.params for m, run in enumerate(runs)}
    return dataclasses.replace(
        first,
        directory=first.directory.evaluation(_label(runs, combination)),
        config=dataclasses.replace(first.config, objectives=objectives),
        model=model,
        params={name_of(m): run.params for m, run in enumerate(runs)},
        shardings=dataclasses.replace(first.shardings, params=placements),
    )


def _check(first: TrainedRun, other: TrainedRun) -> None:
    """Raises `UserError` unless two runs read and write the same symbols."""
    properties = (
        ("task", lambda run: run.task.label),
        ("field to begin from", lambda run: run.model.begins_from),
        ("use of data.lowercase", lambda run: str(run.config.data.lowercase)),
        ("copying of unknown words", lambda run: str(_extends_targets(run))),
    )
    for what, of in properties:
        if of(first) != of(other):
            raise UserError(
                f"{other.directory.path}: expected the {what} of {first.directory.path}, "
                f"{of(first)}, found {of(other)}"
            )
    known = {*first.config.data.further_sources, *first.task.beside}
    unknown = [name for name in other.further_sources if name not in known]
    if unknown:
        raise UserError(
            f"{other.directory.path}: expected sources that the data of {first.directory.path} "
            f"have, {', '.join(known) or 'one alone'}, found {unknown[0]!r}; give this run first"
        )
    of_first, of_other = (
        hash_files(run.directory.vocabularies, LEXICON_FILE) for run in (first, other)
    )
    if of_first != of_other:
        raise UserError(
            f"{other.directory.path}: expected the vocabularies of {first.directory.path}, found "
            "others; --config.data.vocabularies= trains with those of another run"
        )
    if not _same_lexicon(first, other):
        raise UserError(
            f"{other.directory.path}: expected the lexicon of {first.directory.path}, found another"
        )


def _same_lexicon(first: TrainedRun, other: TrainedRun) -> bool:
    """Whether the lexicon of the first, which all members are given, is that of another, too."""
    if LEXICON not in {*first.model.fields, *other.model.fields}:
        return True
    one, two = (run.resources.get(LEXICON) for run in (first, other))
    return None not in (one, two) and all(
        np.array_equal(getattr(one, name), getattr(two, name)) for name in ("ids", "probs")
    )


def _extends_targets(run: TrainedRun) -> bool:
    return any(field.extends_targets for field in further_fields(run.task, run.model.fields))


def _label(runs: Sequence[TrainedRun], combination: str) -> str:
    first, *others = [run.directory.path for run in runs]
    names = ",".join(os.path.relpath(path, first.parent) for path in others)
    return f"ensemble_{combination}={names}"
