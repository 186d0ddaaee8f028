"""Poolings: the interface that they share, their lookup, and levels of a document that use them.

A pooling turns the annotations of a sequence into one vector. A pooling file in `layers/poolings`
holds `PAPER`, a frozen dataclass `Config` and `build(config, depth) -> Pooling`.

A document is read level by level: the words of each sentence are encoded and pooled to a vector of
the sentence, and those of the sentences to one of the document. Any encoder serves.
"""

import abc
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jaxtyping import Bool, Float

from attention_jax.configuration import setting
from attention_jax.discovery import Parts, build_part
from attention_jax.layers.encoder import ENCODERS, Encoded, SequenceEncoder
from attention_jax.layers.mechanism import MECHANISMS
from attention_jax.ops.pooling import Pooled
from attention_jax.ops.spans import to_positions
from attention_jax.types import Array, Call, Params

POOLINGS = Parts("attention_jax.layers.poolings", having=("name",))


class Pooling(abc.ABC):
    """Pooling: pure functions from annotations to one vector of the same depth."""

    @property
    @abc.abstractmethod
    def parameters(self) -> Mapping[str, Any]:
        """The tree of its parameters."""

    @abc.abstractmethod
    def pool(
        self,
        params: Params,
        values: Float[Array, "*B S D"],
        mask: Bool[Array, "*B S"],
        call: Call = Call(),
    ) -> Pooled:
        """Pools what is real; NaN at padding changes nothing, and padding alone gives zeros."""


@dataclasses.dataclass(frozen=True)
class PlainPooling(Pooling):
    """Pooling without parameters.

    Attributes:
      function: (annotations `*B S D`, mask `*B S`) -> what was pooled.
    """

    function: Callable[[Array, Array], Pooled]

    @property
    def parameters(self) -> Mapping[str, Any]:
        """None."""
        return {}

    def pool(
        self, params: Params, values: Array, mask: Array, call: Call = Call()
    ) -> Pooled:
        """Pools the annotations."""
        return self.function(values, mask)


def build_encoder(config: Any, input_dim: int) -> SequenceEncoder:
    """Builds the encoder of a level; raises `ValueError` if its parts do not fit.

    One that attends does so with several heads, unless it is told otherwise.
    """
    attention = MECHANISMS.config("multi_head")()
    return build_part(config, SequenceEncoder, input_dim, attention)


@dataclasses.dataclass(frozen=True)
class LevelConfig:
    """How the units of one level, words or sentences, are read.

    Attributes:
      encoder: What reads them in their order; see `layers/encoders`.
      pooling: What makes one vector of their annotations; see `layers/poolings`.
    """

    encoder: Any = setting({"name": "recurrent", "hidden_dim": 50}, named=ENCODERS.config)
    pooling: Any = setting({"name": "attention"}, named=POOLINGS.config)


@dataclasses.dataclass(frozen=True)
class Level:
    """Level of a document: pure functions from vectors of units to one vector of them all.

    Attributes:
      encoder: Reads the units.
      pooling: Pools their annotations.
    """

    encoder: SequenceEncoder
    pooling: Pooling

    @classmethod
    def build(cls, config: LevelConfig, input_dim: int) -> "Level":
        """Builds a level for units of the given depth; raises `ValueError` if parts do not fit."""
        encoder = build_encoder(config.encoder, input_dim)
        return cls(encoder, build_part(config.pooling, Pooling, encoder.output_dim))

    @property
    def depth(self) -> int:
        """Depth of what it makes."""
        return self.encoder.output_dim

    @property
    def parameters(self) -> dict[str, Any]:
        """The trees of both."""
        return {"encoder": self.encoder.parameters, "pooling": self.pooling.parameters}

    def read(
        self,
        params: Params,
        vectors: Float[Array, "R S E"],
        mask: Bool[Array, "R S"],
        call: Call = Call(),
    ) -> Pooled:
        """Encodes and pools sequences of units; weights are of units, whatever slots stand for."""
        encoded: Encoded = self.encoder.encode(
            params.get("encoder", {}), vectors, mask, call.fold(0).within("encoder")
        )
        summary, weights = self.pooling.pool(
            params.get("pooling", {}), encoded.averaged, encoded.mask, call.fold(1)
        )
        if encoded.spans is not None:
            weights = to_positions(weights, encoded.spans, mask.shape[-1])
        return Pooled(summary, weights)


class Read(NamedTuple):
    """A document that has been read.

    Attributes:
      summary: `B D`.
      words: `B N L`, the share of each word in its sentence.
      sentences: `B N`, the share of each sentence in the document.
    """

    summary: Array
    words: Array
    sentences: Array


@dataclasses.dataclass(frozen=True)
class DocumentReader:
    """Hierarchical reading: words to sentences, and sentences to a document.

    Attributes:
      words: How the words of a sentence are read.
      sentences: How the sentences of a document are read.
    """

    words: Level
    sentences: Level

    @property
    def parameters(self) -> dict[str, Any]:
        """The trees of both levels."""
        return {"words": self.words.parameters, "sentences": self.sentences.parameters}

    def read(
        self,
        params: Params,
        vectors: Float[Array, "B N L E"],
        mask: Bool[Array, "B N L"],
        call: Call = Call(),
    ) -> Read:
        """Reads documents, of which the words under the mask count.

        A sentence without any is passed over, as if it were not there.
        """
        documents, sentences, words, depth = vectors.shape
        rows = documents * sentences
        of_words = self.words.read(
            params["words"], vectors.reshape(rows, words, depth), mask.reshape(rows, words),
            call.fold(0).within("words"),
        )  # fmt: skip
        summaries = of_words.summary.reshape(documents, sentences, self.words.depth)
        of_sentences = self.sentences.read(
            params["sentences"], summaries, mask.any(-1), call.fold(1).within("sentences")
        )
        shares = of_words.weights.reshape(documents, sentences, words)
        return Read(of_sentences.summary, shares, of_sentences.weights)
