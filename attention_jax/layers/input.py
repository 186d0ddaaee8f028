"""Inputs: the interface that they share, what they return, and their lookup.

An input turns fields of a batch into the vectors that an encoder reads: embedded tokens, projected
frames of sound. An input file in `layers/inputs` holds `PAPER`, a frozen dataclass `Config` and
`build(config, sizes) -> Input`.
"""

import abc
from collections.abc import Mapping
from typing import Any, NamedTuple

from attention_jax.discovery import Parts
from attention_jax.types import Array, Batch, Call, Params

INPUTS = Parts("attention_jax.layers.inputs", having=("name",))


class InputSizes(NamedTuple):
    """Sizes that an input must fit.

    Attributes:
      name: That of its source, by which fields of a batch are called.
      vocabulary_size: How many ids a source of symbols may have.
      is_tied: Whether the target embedding embeds symbols of the source, too.
      dropout: Share of each vector that is dropped.
    """

    name: str
    vocabulary_size: int
    is_tied: bool = False
    dropout: float = 0.0


class Embedded(NamedTuple):
    """Embedded source: a sequence of vectors, with what is known of its positions.

    Attributes:
      vectors: `B N E`, one for each position; anything at padding, NaN included.
      mask: `B N`, True at real positions.
      is_word: `B N`, True at real positions that are no boundary, such as EOS.
      aux: What is known of the positions beside these, an array `B N ...` each: ids of tokens.
    """

    vectors: Array
    mask: Array
    is_word: Array
    aux: Mapping[str, Array]


class Input(abc.ABC):
    """Input: pure functions from the fields of a batch to vectors.

    Attributes:
      depth: E, of its vectors.
      vocabulary_size: How many ids its positions may have, as `aux["source_ids"]`; None where they
        are no symbols.
    """

    depth: int
    vocabulary_size: int | None = None

    @property
    @abc.abstractmethod
    def fields(self) -> tuple[str, ...]:
        """Names of the fields that it reads."""

    @property
    @abc.abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """The tree of its parameters."""

    @abc.abstractmethod
    def embed(self, params: Params, batch: Batch, call: Call = Call()) -> Embedded:
        """Turns the fields of a batch into vectors.

        Args:
          params: Its parameters.
          batch: What it reads is among the fields.
          call: Mode and key, for dropout.
        """
