"""The words of a source that the vocabulary of outputs lacks, as a field: where there are, `B X`.

The axis is as long as the longest list of such words in a split, and there are as many ids beyond
the vocabulary.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from attention_jax.data.examples import Examples
from attention_jax.data.field import Field

NAME = "unknown_words"


def _are_there(examples: Examples) -> Sequence[Bool[np.ndarray, " _"]]:
    return [np.ones(len(words), bool) for words in examples.own_words]


FIELD = Field(
    name=NAME, axes=(NAME,), values=_are_there, dtype=np.bool_, padding=False, is_input=True
)
