"""Readouts: the interface that they share, and their lookup.

A readout turns a decoder's features into predictions of the next token, with whatever else it asks
of a step: its attention, or the source. A readout file in `layers/readouts` holds `PAPER`, a frozen
dataclass `Config` and `build(config, sizes) -> Readout`.
"""

import abc
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from attention_jax.discovery import Parts
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter
from attention_jax.ops.predictions import Predictions
from attention_jax.types import Array, AttentionOutput, Batch, Params

READOUTS = Parts("attention_jax.layers.readouts")


class ReadoutSizes(NamedTuple):
    """Sizes that a readout must fit.

    Attributes:
      vocabulary_size: V, target ids, special ones included.
      feature_dim: Depth of the features.
      embedding_dim: Depth of an embedded target token.
      is_tied: Whether the target embedding is the output matrix, too (`tie_embeddings`).
      memory_dim: Depth of an annotation of the source; None where there is no source.
    """

    vocabulary_size: int
    feature_dim: int
    embedding_dim: int
    is_tied: bool = False
    memory_dim: int | None = None


class Step(NamedTuple):
    """Decoder steps, as a readout sees them; `*B` is `B T` in training and `B K` in a search.

    Attributes:
      features: `*B F`, dropped out already.
      attention: What the decoder has attended to, `*B S`; None where there is no source.
      embedding: The target embedding, `V E`.
      source: What `Readout.prepare` returned, with an axis of one for `T` or `K`: `B 1 ...`.
    """

    features: Array
    attention: AttentionOutput | None
    embedding: Array
    source: Any = ()


class Readout(abc.ABC):
    """Readout: pure functions from features to predictions of the next token.

    Attributes:
      fields: Names of the fields of a batch that `prepare` reads, beside those of the sources.
    """

    fields: Sequence[str] = ()

    @property
    @abc.abstractmethod
    def parameters(self) -> Mapping[str, Parameter]:
        """Its parameters by name; they stand beside the model's embeddings."""

    @abc.abstractmethod
    def predict(self, params: Params, step: Step) -> Predictions:
        """Returns the distribution of each next token."""

    def prepare(self, params: Params, encoded: Encoded, batch: Batch) -> Any:
        """Prepares what it reads of a source, once: a pytree with leading axis `B`."""
        return ()

    def input_ids(self, tokens: Array) -> Array:
        """Returns the ids to embed for written tokens: UNK for words beyond the vocabulary."""
        return tokens
