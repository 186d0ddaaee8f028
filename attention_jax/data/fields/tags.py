"""Tags of an inflected form as a field: their ids in the source's vocabulary, int32 `B N`."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int

from attention_jax.data.examples import Examples
from attention_jax.data.field import Field
from attention_jax.data.text.symbol_kinds import tag_symbols
from attention_jax.errors import DataError
from attention_jax.types import SpecialIds

NAME = "tags"


def _ids(examples: Examples) -> Sequence[Int[np.ndarray, " _"]]:
    """Finds the tags in the texts of the sources."""
    vocabulary = examples.source_vocabulary
    if not vocabulary.kind.startswith("tags_"):
        raise DataError(
            "config.data.name: expected sources with tags, as those of conll2017 and inflections, "
            f"found {vocabulary.kind}"
        )
    if vocabulary.kind != "tags_apart":  # else they would be read among the letters as well
        raise DataError(
            "config.data.tags: expected apart beside the input tagged, found "
            f"{vocabulary.kind.removeprefix('tags_')}"
        )
    return [np.array(vocabulary.ids_of(tag_symbols(text)), np.int32) for text in examples.sources]


# They are known before the output is, and have no order that counts.
FIELD = Field(
    name=NAME, axes=(NAME,), values=_ids, padding=SpecialIds.PAD, mask=f"{NAME}_mask", is_input=True
)
