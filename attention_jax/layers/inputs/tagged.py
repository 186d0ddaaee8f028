"""Embedded letters beside a bag of tags: what is to be done with a word stands beside each letter.

  e_j = [E x_j ; sum_k E t_k]

Letters and tags are symbols of one vocabulary, and rows of one table. Attention is to the letters
alone, so that whatever is monotonic about it concerns them.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.input import Embedded, Input, InputSizes
from attention_jax.layers.inputs.tokens import TokenInput
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.lookup import look_up
from attention_jax.ops.masks import zero_padding
from attention_jax.types import Batch, Call, Params

PAPER = "Wu and Cotterell (2019), Exact hard monotonic attention, on tags apart from letters"
_TAGS = ("tags", "tags_mask")


@dataclasses.dataclass(frozen=True)
class Config:
    """A table of letters and tags.

    Attributes:
      name: The input.
      embedding_dim: Depth of an embedded letter, and of the tags together.
    """

    name: str = setting("tagged")
    embedding_dim: int = setting(128, at_least=1)


def build(config: Config, sizes: InputSizes) -> "TaggedInput":
    """Builds the input.

    Raises:
      ValueError: If its table is to be the target's.
    """
    if sizes.is_tied:
        raise ValueError(
            "tie_embeddings: expected 'none' or 'target' for sources with tags, found 'all'"
        )
    letters = TokenInput(sizes._replace(dropout=0.0), config.embedding_dim)
    return TaggedInput(sizes.dropout, letters)


@dataclasses.dataclass(frozen=True)
class TaggedInput(Input):
    """Letters beside a bag of tags, as pure functions.

    Attributes:
      dropout: Share of each vector that is dropped.
      letters: How letters are embedded.
    """

    dropout: float
    letters: TokenInput

    @property
    def depth(self) -> int:  # type: ignore[override]
        """Of a letter and of the tags."""
        return 2 * self.letters.depth

    @property
    def vocabulary_size(self) -> int:  # type: ignore[override]
        """How many symbols there are, letters and tags."""
        return self.letters.vocabulary_size

    @property
    def fields(self) -> tuple[str, ...]:
        """Those of the letters, and tags `B N`, in any order."""
        return (*self.letters.fields, *_TAGS)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The table."""
        return self.letters.parameters

    def embed(self, params: Params, batch: Batch, call: Call = Call()) -> Embedded:
        """Looks up letters and tags."""
        # Without dropout, which is drawn below for letters and tags together.
        letters = self.letters.embed(params, batch)
        ids, mask = (batch[field] for field in _TAGS)
        tags = zero_padding(look_up(params["embedding"], ids), mask).sum(-2, keepdims=True)  # B 1 E
        beside = jnp.broadcast_to(tags, letters.vectors.shape)  # B 1 E -> B N E
        vectors = jnp.concatenate([letters.vectors, beside], axis=-1)
        kept = dropout_factors(call, self.dropout, vectors.shape, vectors.dtype)
        return letters._replace(vectors=scale(vectors, kept))
