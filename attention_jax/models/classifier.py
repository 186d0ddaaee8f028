"""Document classifier: words are read to sentences, sentences to a document, and that to a label.

  s[i] = pool_j encode(E x[i, j]);   v = pool_i encode(s[i]);   p = softmax(W v + b)

With bidirectional GRUs as encoders and attention with a learnt query as pooling these are
hierarchical attention networks. A search writes the label and then the end.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.errors import at_field
from attention_jax.layers.parameters import Initialization, Parameter
from attention_jax.layers.pooling import DocumentReader, Level, LevelConfig, Read
from attention_jax.models.labels import LabelModel
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.lookup import look_up
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.products import add_bias
from attention_jax.types import Array, Batch, Call, Params, SpecialIds

PAPER = "Yang et al. (2016), Hierarchical attention networks for document classification"


@dataclasses.dataclass(frozen=True)
class Config:
    """A document classifier.

    Attributes:
      name: The model.
      embedding_dim: Depth of an embedded word.
      words: How the words of a sentence are read, and made one vector.
      sentences: How the sentences of a document are read, and made one vector.
      word_dropout: Share of the words that are left unread in training, as if they were not known.
      embedding_dropout: Share of each embedded word that is dropped.
      output_dropout: Share of the document's vector that is dropped before the labels.
      initialization: How parameters start.
      dtype: Of activations; parameters, softmax and losses are float32 always. With
        `JAX_ENABLE_X64=1`, whatever is float32 otherwise is float64.
    """

    source_form: ClassVar[str] = "document"
    name: str = setting("classifier")
    embedding_dim: int = setting(200, at_least=1)
    words: LevelConfig = dataclasses.field(default_factory=LevelConfig)
    sentences: LevelConfig = dataclasses.field(default_factory=LevelConfig)
    word_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    embedding_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    output_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    initialization: Initialization = dataclasses.field(default_factory=Initialization)
    dtype: str = setting("float32", choices=("float32", "bfloat16"))


def build(
    config: Config, source_vocabulary_size: int, target_vocabulary_size: int
) -> "Classifier":
    """Builds the model; raises `ConfigError` if parts of the config do not fit."""
    try:
        words = Level.build(config.words, config.embedding_dim)
        reader = DocumentReader(words, Level.build(config.sentences, words.depth))
        # Declared once, so that a mistake is reported before anything is compiled.
        reader.parameters  # noqa: B018
    except ValueError as error:
        raise at_field("config.model", error) from None
    return Classifier(config, source_vocabulary_size, target_vocabulary_size, reader)


@dataclasses.dataclass(frozen=True)
class Classifier(LabelModel):
    """Document classifier as pure functions of its parameters.

    Attributes:
      config: The model's config.
      source_vocabulary_size: How many word ids there are.
      target_vocabulary_size: How many label ids there are, special ones included.
      reader: Reads documents.
    """

    config: Config
    source_vocabulary_size: int
    target_vocabulary_size: int
    reader: DocumentReader

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""
        labels, depth = self.target_vocabulary_size - SpecialIds.COUNT, self.reader.sentences.depth
        return {
            "source_embedding": Parameter.of(
                "word_embedding", vocab=self.source_vocabulary_size, embed=self.config.embedding_dim
            ),
            **self.reader.parameters,
            "label_kernel": Parameter.of("kernel", features=depth, prediction=labels),
            "label_bias": Parameter.of("bias", prediction=labels),
        }

    def read(self, params: Params, batch: Batch, call: Call) -> tuple[Array, Read, dict[str, Any]]:
        """Reads documents; returns the logits of their labels `B C`, and what was read."""
        mask = word_mask(batch)
        vectors = embed_words(self.config, params["source_embedding"], batch["source"], mask, call)
        return *label(self, params, vectors, mask, call), {}


def word_mask(batch: Batch) -> Array:
    """Tells where a table of words `B N L` has any: in real sentences, up to the end of each."""
    return (batch["source"] != SpecialIds.PAD) & batch["source_mask"][..., None]


def embed_words(config: Config, table: Array, ids: Array, mask: Array, call: Call) -> Array:
    """Looks up words, some of them as unknown ones and parts of all dropped in training."""
    if call.train and config.word_dropout:
        kept = jax.random.bernoulli(call.fold(0).rng, 1.0 - config.word_dropout, ids.shape)
        ids = jnp.where(kept, ids, SpecialIds.UNK)
    vectors = zero_padding(look_up(table, ids), mask)
    rate = config.embedding_dropout
    return scale(vectors, dropout_factors(call.fold(1), rate, vectors.shape, vectors.dtype))


def label(
    model: Classifier, weights: Params, vectors: Array, mask: Array, call: Call
) -> tuple[Array, Read]:
    """Reads embedded words `B N L E` under a mask; returns logits of labels, and what was read."""
    read = model.reader.read(weights, vectors, mask, call.fold(2))
    features, rate = read.summary, model.config.output_dropout
    kept = dropout_factors(call.fold(3), rate, features.shape, features.dtype)
    logits = add_bias(scale(features, kept) @ weights["label_kernel"], weights["label_bias"])
    return logits, read
