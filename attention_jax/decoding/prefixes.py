"""Target prefixes: beginnings of outputs that a user dictates, as in interactive translation.

A prefix is the beginning of a target: it is prepared and cut into tokens as a whole target is. A
word that the vocabulary lacks has its id beyond it where the source has it too, and the model
copies; elsewhere it is UNK to the model, and written as the user wrote it. Of subwords, the last
one may be gone on with, if the model wants that: behind `inter` may come `national`, or another
word. A space at the end of a prefix is not part of it.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from attention_jax.data.examples import Inputs
from attention_jax.data.field import Field
from attention_jax.data.text.extended_vocabulary import extended
from attention_jax.data.text.symbol_kinds import WITH_STEPS
from attention_jax.data.text.told_words import told_words
from attention_jax.decoding.scoring import check_label
from attention_jax.errors import DataError, UserError
from attention_jax.runs.load import TrainedRun
from attention_jax.types import SpecialIds

# Of UNK and ids that are not special: padding alone tells where an output is free. No further
# source can have a name with a slash.
PREFIX = Field(name="search/prefix", axes=("prefix",), padding=SpecialIds.PAD, is_input=True)


def check_prefixable(run: TrainedRun) -> None:
    """Raises `UserError` for a run whose outputs begin otherwise than with a text."""
    if run.task.continues:
        raise UserError(
            "--prefix: expected a model that reads sources, found a language model, which goes on "
            "from the lines of its input"
        )
    if run.target_vocabulary.kind in WITH_STEPS.values():
        raise UserError(
            "--prefix: expected a run whose targets are texts, found one whose targets have STEPs, "
            "of which a prefix does not tell"
        )


def with_prefixes(
    run: TrainedRun, inputs: Inputs, texts: Sequence[str], numbers: Sequence[int]
) -> tuple[Inputs, list[tuple[tuple[str, str], ...]]]:
    """Prefix-constrained decoding: returns inputs of a search with what outputs begin with.

    Args:
      run: The run that searches.
      inputs: The sources.
      texts: The prefix of each, in the form of the data's targets; blank ones leave it free.
      numbers: The number of the line of each, from 1, for messages.

    Returns:
      The inputs, and what the unknown words of each prefix are, as `told_words` has them.

    Raises:
      DataError: If a prefix leaves an output no room for its end, or is no label where outputs are.
    """
    first = [run.config.search.first_token]
    found: list[Int[np.ndarray, " _"]] = []
    told = []
    for place, text in enumerate(texts):
        vocabulary = extended(run.target_vocabulary, inputs.own_words[place])
        ids = vocabulary.encode(text) if text.strip() else []
        if ids:
            check_label(run, text, f"--prefix line {numbers[place]}")
        told.append(told_words(vocabulary, ids, text))
        # What all outputs begin with is no part of a prefix, which stands behind it.
        found.append(np.array(ids[1:] if ids[:1] == first else ids, np.int32))
    if not any(map(len, found)):
        return inputs, told
    _check_room(run, inputs, found, numbers)
    fields, extras = (*inputs.fields, PREFIX), {**inputs.extras, PREFIX.name: found}
    return dataclasses.replace(inputs, fields=fields, extras=extras), told


def _check_room(
    run: TrainedRun, inputs: Inputs, prefixes: Sequence[np.ndarray], numbers: Sequence[int]
) -> None:
    search, sources = run.config.search, inputs.columns[run.model.begins_from]
    for source, prefix, number in zip(sources, prefixes, numbers, strict=True):
        room, wanted = search.longest(len(source)), len(prefix) + 1 + (search.first_token > 0)
        if len(prefix) and wanted > room:
            raise DataError(
                f"--prefix line {number}: expected at most {room} tokens with the end of the "
                "output, by search.max_length_factor and search.max_length_constant, found "
                f"{wanted}"
            )
