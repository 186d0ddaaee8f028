"""What is measured: a model of some size, and a batch of some size for it."""

import dataclasses
from typing import Any

import numpy as np

from attention_jax.configuration import typed
from attention_jax.models import build_model, find_config
from attention_jax.types import Model
from experiments.speed.local_attention import MECHANISMS
from experiments.speed.project_model import batch_of, model_fields
from experiments.speed.workloads import Sentences, Sizes


@dataclasses.dataclass(frozen=True)
class Subject:
    """A training step: the recurrent model of `experiments.speed`, and sentences for it.

    Attributes:
      batch: Sentences in a batch.
      source_length: Tokens of each source.
      target_length: Tokens of each target.
      hidden: Depth of every hidden layer; embeddings have half of it.
      vocabulary: Symbols on either side.
      attention: The mechanism: `none`, or one of those whose cost `experiments.speed` measures.
      dtype: Of activations.
    """

    batch: int
    source_length: int
    target_length: int
    hidden: int
    vocabulary: int
    attention: str = "bahdanau"
    dtype: str = "float32"

    def model(self) -> Model:
        """Builds the model."""
        sizes = Sizes(self.vocabulary, self.hidden // 2, self.hidden)
        fields = {**model_fields(sizes), "attention": self._attention(), "dtype": self.dtype}
        config = typed(find_config("rnn_seq2seq"), fields, "config.model")
        return build_model(config, self.vocabulary, self.vocabulary)

    def make_batch(self) -> dict[str, np.ndarray]:
        """Draws sentences, none of which is padded."""
        lengths = self.source_length, self.target_length
        return batch_of(Sentences.random(self.batch, *lengths, self.vocabulary))

    def _attention(self) -> dict[str, Any]:
        fields = {"name": self.attention, **MECHANISMS.get(self.attention, {})}
        return {**fields, "attention_dim": self.hidden} if "attention_dim" in fields else fields
