"""Subjects of scaling measurements: a model of some size, and a batch for it."""

import dataclasses
from typing import Any

import numpy as np

from attention_jax.configuration import typed
from attention_jax.models import MODELS, build_model
from attention_jax.types import Model
from configs.vaswani2017 import transformer
from experiments.benchmarks.speed.local_attention import CHOSEN
from experiments.benchmarks.speed.project_model import batch_of, model_fields
from experiments.benchmarks.speed.workloads import Sentences, Sizes

RECURRENT, TRANSFORMER = "recurrent", "transformer"
_LAYERS, _HEAD_DEPTH = 6, 64


@dataclasses.dataclass(frozen=True)
class Subject:
    """A training step: a model, and sentences for it.

    Attributes:
      model: `recurrent`, that of `experiments.benchmarks.speed`, or `transformer`, that of Vaswani
        et al. (2017) with six layers, heads of depth 64 and feed-forward layers four times as deep.
      batch: Sentences in a batch.
      source_length: Tokens of each source.
      target_length: Tokens of each target.
      hidden: Depth of every hidden layer; embeddings of the recurrent model have half of it.
      vocabulary: Symbols on either side.
      attention: The mechanism of the recurrent model: `none`, or one of those whose cost
        `experiments.benchmarks.speed` measures.
      dtype: Of activations.
    """

    batch: int
    source_length: int
    target_length: int
    hidden: int
    vocabulary: int
    model: str = RECURRENT
    attention: str = "bahdanau"
    dtype: str = "float32"

    def build(self) -> Model:
        """Builds the model."""
        fields = self._transformer() if self.model == TRANSFORMER else self._recurrent()
        name = fields.pop("name")
        config = typed(MODELS.config(name), {**fields, "dtype": self.dtype}, "config.model")
        return build_model(config, self.vocabulary, self.vocabulary)

    def make_batch(self) -> dict[str, np.ndarray]:
        """Draws sentences, none of which is padded."""
        lengths = self.source_length, self.target_length
        return batch_of(Sentences.random(self.batch, *lengths, self.vocabulary))

    def _recurrent(self) -> dict[str, Any]:
        attention = {"name": self.attention, **CHOSEN.get(self.attention, {})}
        if "attention_dim" in attention:
            attention["attention_dim"] = self.hidden
        sizes = Sizes(self.vocabulary, self.hidden // 2, self.hidden)
        return {"name": "encoder_decoder", **model_fields(sizes), "attention": attention}

    def _transformer(self) -> dict[str, Any]:
        heads = max(1, self.hidden // _HEAD_DEPTH)
        return transformer(_LAYERS, self.hidden, 4 * self.hidden, heads, dropout=0.1).to_dict()
