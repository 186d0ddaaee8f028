"""Rationales: a generator selects words of a document, and a classifier reads nothing else.

  z ~ p(z | x);   p(y | x, z) = classifier(x, words with z > 0)

The classifier is that of `models/classifier.py`: its encoders pass over words that are not
selected, as if they were not there, so that whatever tells the label is among those that are.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from attention_jax.configuration import setting
from attention_jax.discovery import build_part
from attention_jax.errors import ConfigError, at_field
from attention_jax.layers.encoder import ENCODERS, SequenceEncoder
from attention_jax.layers.pooling import Read, build_encoder
from attention_jax.layers.selector import SELECTORS, Selector
from attention_jax.models import classifier
from attention_jax.models.labels import LabelModel
from attention_jax.types import Array, Batch, Call, Params

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
      generator: What selects words; it reads the embedded words that the classifier does, those
        that `word_dropout` leaves unread included.
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
        raise at_field("config.model.generator", error) from None
    if not encoder.keeps_positions:
        raise ConfigError(
            "config.model.generator.encoder.name: expected one with an annotation for each word, "
            f"found {chosen.encoder.name!r}"
        )
    selector = build_part(chosen.selector, Selector, encoder.output_dim)
    return Rationalizer(reading, encoder, selector)


@dataclasses.dataclass(frozen=True)
class Rationalizer(LabelModel):
    """Rationales as pure functions of parameters.

    The output `rationale` is what each word is
    read by, `B N L`, and `selection` an `ops.rationales.Selection`.

    Attributes:
      reading: The classifier.
      encoder: Reads what is selected from.
      selector: Selects.
    """

    reading: classifier.Classifier
    encoder: SequenceEncoder
    selector: Selector
    provides: ClassVar[Mapping[str, str | None]] = {
        **LabelModel.provides,
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

    def read(self, params: Params, batch: Batch, call: Call) -> tuple[Array, Read, dict[str, Any]]:
        """Selects words; returns the logits of labels, what was read, and the selection."""
        config, generator = self.config, params["generator"]
        ids, mask = batch["source"], classifier.word_mask(batch)
        table = params["source_embedding"]
        vectors = classifier.embed_words(config, table, ids, mask, call)
        # What selects knows all words: it would learn to pass over the dropped ones instead.
        known = dataclasses.replace(config, word_dropout=0.0)
        seen = classifier.embed_words(known, table, ids, mask, call)
        documents, sentences, words, depth = vectors.shape
        rows = documents * sentences
        encoded = self.encoder.encode(
            generator.get("encoder", {}), seen.reshape(rows, words, depth),
            mask.reshape(rows, words), call.fold(4).within("generator"),
        )  # fmt: skip
        annotations = encoded.averaged.reshape(*mask.shape, self.encoder.output_dim)
        selection = self.selector.select(generator["selector"], annotations, mask, call.fold(5))
        # Not only zeros: what is not selected does not even move a recurrent state.
        factors = selection.selected[..., None].astype(vectors.dtype)
        is_read = mask & (selection.selected > 0)
        logits, read = classifier.label(self.reading, params, vectors * factors, is_read, call)
        return logits, read, {"rationale": selection.selected, "selection": selection}
