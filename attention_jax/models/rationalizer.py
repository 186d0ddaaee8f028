"""Rationales: a generator selects words of a document, and a classifier reads nothing else.

  z ~ p(z | x);   p(y | x, z) = classifier(x, words with z > 0)

The classifier is that of `models/classifier.py`: its encoders pass over words that are not
selected, as if they were not there, so that whatever tells the label is among those that are.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from attention_jax.configuration import setting
from attention_jax.discovery import module_of
from attention_jax.errors import ConfigError
from attention_jax.layers.encoder import ENCODERS, SequenceEncoder
from attention_jax.layers.parameters import declare, logical_axes
from attention_jax.layers.pooling import build_encoder
from attention_jax.layers.selector import SELECTORS, Selector
from attention_jax.models import classifier
from attention_jax.models.labels import LabelPredictions, label_then_end
from attention_jax.ops.rationales import Selection
from attention_jax.types import (
    Array,
    AttentionOutput,
    Batch,
    Call,
    ModelOutput,
    Params,
)

PAPER = "Lei, Barzilay and Jaakkola (2016), Rationalizing neural predictions"


@dataclasses.dataclass(frozen=True)
class GeneratorConfig:
    """What selects words.

    Attributes:
      encoder: What reads each sentence, so that a word is selected in its context; one annotation
        a word.
      selector: What selects words by their annotations; see `layers/selectors`.
    """

    encoder: Any = setting({"name": "recurrent", "hidden_dim": 50}, named=ENCODERS.config)
    selector: Any = setting({"name": "independent"}, named=SELECTORS.config)


@dataclasses.dataclass(frozen=True)
class Config(classifier.Config):
    """A generator and a classifier; further fields are those of `models.classifier.Config`.

    Attributes:
      name: The model.
      generator: What selects words; it reads the embedded words that the classifier does.
    """

    task: ClassVar[str] = "rationalize"
    name: str = setting("rationalizer")
    generator: GeneratorConfig = dataclasses.field(default_factory=GeneratorConfig)


def build(
    config: Config, source_vocabulary_size: int, target_vocabulary_size: int
) -> "Rationalizer":
    """Builds the model; raises `ConfigError` if parts of the config do not fit."""
    reading = classifier.build(config, source_vocabulary_size, target_vocabulary_size)
    chosen = config.generator
    try:
        encoder = build_encoder(chosen.encoder, config.embedding_dim)
        encoder.parameters  # noqa: B018  (rejects parts that do not fit)
    except ValueError as error:
        raise ConfigError(f"config.model.generator.{error}") from None
    if not encoder.keeps_positions:
        raise ConfigError(
            "config.model.generator.encoder.name: expected one with an annotation for each word, "
            f"found {chosen.encoder.name!r}"
        )
    selector = module_of(chosen.selector).build(chosen.selector, encoder.output_dim)
    return Rationalizer(reading, encoder, selector)


@dataclasses.dataclass(frozen=True)
class Rationalizer:
    """Rationales as pure functions of parameters; see `types.Model`.

    Sources are those of `models.classifier.Classifier`. The output `rationale` is what each word is
    read by, `B N L`, and `selection` an `ops.rationales.Selection`.

    Attributes:
      reading: The classifier.
      encoder: Reads what is selected from.
      selector: Selects.
    """

    reading: classifier.Classifier
    encoder: SequenceEncoder
    selector: Selector
    begins_from: ClassVar[str] = "source"
    fields: ClassVar[Sequence[str]] = ("source", "source_mask")
    provides: ClassVar[Mapping[str, str | None]] = {
        "word_weights": None,
        "sentence_weights": None,
        "rationale": None,
        "selection": "config.model.generator",
    }

    @property
    def config(self) -> Config:
        """The model's config."""
        return self.reading.config

    @property
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters: the classifier's, and the generator's."""
        generator = {"encoder": self.encoder.parameters, "selector": self.selector.parameters}
        return {**self.reading.parameters, "generator": generator}

    @property
    def module(self) -> "RationalizerModule":
        """The Linen module that declares the parameters."""
        return RationalizerModule(self)

    def init(self, rng: Array) -> Params:
        """Draws parameters."""
        batch = {"source": jnp.ones((1, 1, 1), jnp.int32), "source_mask": jnp.ones((1, 1), bool)}
        return self.module.init(rng, batch, Call())["params"]

    def parameter_axes(self) -> Params:
        """Returns the logical axes of every parameter."""
        return logical_axes(self.parameters)

    def apply(self, params: Params, batch: Batch, call: Call = Call()) -> ModelOutput:
        """Selects words, and predicts the label from them."""
        logits, read, selection = self._call(params, batch, call)
        steps = batch["target"].shape[1]
        logits, context, weights = (
            jnp.repeat(leaf[:, None], steps, axis=1)  # B ... -> B T ...
            for leaf in (logits, read.summary, read.sentences)
        )
        attention = AttentionOutput(context, weights, weights)
        outputs = {
            "word_weights": read.words, "sentence_weights": read.sentences,
            "rationale": selection.selected, "selection": selection,
        }  # fmt: skip
        return ModelOutput(LabelPredictions(logits), attention, outputs)

    def start(self, params: Params, batch: Batch, max_length: int) -> tuple[Any, Any]:
        """Reads documents; a search asks for their labels first."""
        logits, read, _ = self._call(params, batch, Call())
        memory = {"logits": logits, "weights": read.sentences}
        state = {"position": jnp.zeros(logits.shape[:1], jnp.int32)}
        return jax.tree.map(lambda leaf: leaf[:, None], (memory, state))

    def slots(self, memory: Any) -> None:
        """Returns nothing: slot s is sentence s of the source."""
        return None

    def step(
        self, params: Params, memory: Any, state: Any, tokens: Array
    ) -> tuple[LabelPredictions, Array, Any]:
        """Gives the label of every hypothesis, and the end after it."""
        return label_then_end(memory, state, tokens)

    def _call(self, params: Params, batch: Batch, call: Call) -> tuple[Array, Any, Selection]:
        if self.config.dtype != "float32":
            # Mixed precision: activations are of this type, gradients reach the float32 parameters.
            params = jax.tree.map(lambda leaf: leaf.astype(self.config.dtype), params)
        return self.module.apply({"params": params}, batch, call)


class RationalizerModule(nn.Module):
    """Generator and classifier as a Linen module, which owns the parameters.

    Attributes:
      model: Its pure functions.
    """

    model: Rationalizer

    def setup(self) -> None:
        """Declares the parameters."""
        self.weights = declare(self, self.model.parameters, self.model.config.initialization)

    def __call__(self, batch: Batch, call: Call) -> tuple[Array, Any, Selection]:
        """Selects words; returns the logits of labels, what was read, and the selection."""
        model, config, weights = self.model, self.model.config, self.weights
        ids, mask = batch["source"], classifier.word_mask(batch)
        vectors = classifier.embed_words(config, weights["source_embedding"], ids, mask, call)
        documents, sentences, words, depth = vectors.shape
        rows = documents * sentences
        generator = weights["generator"]
        encoded = model.encoder.encode(
            generator.get("encoder", {}), vectors.reshape(rows, words, depth),
            mask.reshape(rows, words), call.fold(4).within("generator"),
        )  # fmt: skip
        annotations = encoded.averaged.reshape(*mask.shape, model.encoder.output_dim)
        selection = model.selector.select(
            generator["selector"], annotations, mask, call.fold(5)
        )
        # Not only zeros: what is not selected does not even move a recurrent state.
        factors = selection.selected[..., None].astype(vectors.dtype)
        is_read = mask & (selection.selected > 0)
        logits, read = classifier.label(model.reading, weights, vectors * factors, is_read, call)
        return logits, read, selection
