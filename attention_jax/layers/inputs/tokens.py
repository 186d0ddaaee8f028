"""Embedded tokens: one learned vector for each symbol of a vocabulary.

  e_j = E x_j
"""

import dataclasses
from collections.abc import Mapping

from attention_jax.configuration import setting
from attention_jax.errors import ConfigError
from attention_jax.layers.input import Embedded, Input, InputSizes
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.lookup import look_up
from attention_jax.types import Batch, Call, Params, SpecialIds, arrays_of

PAPER = "Bengio, Ducharme, Vincent and Jauvin (2003), A neural probabilistic language model"


@dataclasses.dataclass(frozen=True)
class Config:
    """Word embeddings: a table with a row for each symbol.

    Attributes:
      name: The input.
      embedding_dim: Depth of an embedded token.
    """

    name: str = setting("tokens")
    embedding_dim: int = setting(128, at_least=1)


def build(config: Config, sizes: InputSizes) -> "TokenInput":
    """Builds the input."""
    return TokenInput(sizes, config.embedding_dim)


@dataclasses.dataclass(frozen=True)
class TokenInput(Input):
    """Embedded tokens as pure functions.

    Attributes:
      sizes: What it fits.
      depth: Depth of an embedded token.
    """

    sizes: InputSizes
    depth: int

    @property
    def vocabulary_size(self) -> int:
        """How many symbols there are."""
        return self.sizes.vocabulary_size

    @property
    def fields(self) -> tuple[str, ...]:
        """Ids `B N`, which end in EOS, and where they are real."""
        return arrays_of(self.sizes.name)

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The table, but where it is the target's."""
        if self.sizes.is_tied:
            return {}
        table = Parameter.of("word_embedding", vocab=self.vocabulary_size, embed=self.depth)
        return {"embedding": table}

    def embed(self, params: Params, batch: Batch, call: Call = Call()) -> Embedded:
        """Embedding look-up: turns ids `B N` into vectors `B N E`.

        Raises:
          ConfigError: If the source is no sequence of ids.
        """
        ids, mask = (batch[field] for field in self.fields)
        if ids.ndim != 2:
            raise ConfigError(
                f"config.model.sources.{self.sizes.name}.input.name: expected an input of vectors, "
                f"such as 'frames', for an array of shape {ids.shape}, found 'tokens'"
            )
        vectors = look_up(params["embedding"], ids)
        kept = dropout_factors(call, self.sizes.dropout, vectors.shape, vectors.dtype)
        # Boundaries are attended to, but nothing has to be translated of them.
        is_boundary = (ids == SpecialIds.BOS) | (ids == SpecialIds.EOS)
        return Embedded(scale(vectors, kept), mask, mask & ~is_boundary, {"source_ids": ids})
