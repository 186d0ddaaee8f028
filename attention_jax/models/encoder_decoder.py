"""The encoder-decoder: embeddings, any encoder, attention, any decoder, vocabulary.

Everything that does not depend on the recurrence is computed for all steps at once: projections
of embeddings and keys before the loop, readout and logits after it.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn

from attention_jax.configuration import setting
from attention_jax.errors import ConfigError
from attention_jax.layers import decoder, encoder, mechanism
from attention_jax.layers.dropout import dropout_factors, scale
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Initialization, Parameter, declare, logical_axes
from attention_jax.layers.predictor import PREDICTORS, build_predictors
from attention_jax.layers.readout import READOUTS, Readout, ReadoutSizes, Step
from attention_jax.layers.refinement import positional_refinements
from attention_jax.ops.lookup import look_up
from attention_jax.ops.masks import shift_right
from attention_jax.ops.predictions import Predictions
from attention_jax.types import Array, AttentionOutput, Batch, Call, ModelOutput, Params, SpecialIds

_TYINGS = ("none", "target", "all")


@dataclasses.dataclass(frozen=True)
class Config:
    """An encoder-decoder.

    Attributes:
      name: The model.
      source_embedding_dim: Depth of an embedded source token.
      target_embedding_dim: Depth of an embedded target token.
      encoder: How the source is read.
      attention: How the decoder attends to it; `none` for a fixed vector. Encoders and decoders
        that attend to their own past or present do so in the same way, unless told otherwise.
      decoder: In which order the decoder attends, updates and reads out.
      embedding_dropout: Share of each embedded token that is dropped.
      output_dropout: Share of the features that is dropped before the vocabulary.
      tie_embeddings: `target` uses the target embedding as output matrix too, `all` also as
        source embedding (joint vocabularies only).
      initialization: How parameters start.
      readout: What the features are turned into predictions by; see `layers/readouts`.
      predictors: What is predicted beside the target, for objectives that teach it, by name; see
        `layers/predictors`.
      dtype: Of activations; parameters, softmax and losses are float32 always. With
        `JAX_ENABLE_X64=1`, whatever is float32 otherwise is float64.
    """

    name: str = setting("encoder_decoder")
    source_embedding_dim: int = setting(128, at_least=1)
    target_embedding_dim: int = setting(128, at_least=1)
    encoder: Any = setting(
        {"name": "recurrent"}, named=encoder.ENCODERS.config, unnamed="recurrent"
    )
    attention: Any = setting({"name": "bahdanau"}, named=mechanism.find_config)
    decoder: Any = setting({"name": "conditional_gru"}, named=decoder.DECODERS.config)
    embedding_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    output_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    tie_embeddings: str = setting("none", choices=_TYINGS)
    initialization: Initialization = dataclasses.field(default_factory=Initialization)
    FORMER: ClassVar[Mapping[str, Any]] = {"fertility_dim": 0}  # predictors.fertility.hidden_dim
    readout: Any = setting({"name": "softmax"}, named=READOUTS.config)
    predictors: Mapping[str, Any] = setting({}, members=PREDICTORS.config)
    dtype: str = setting("float32", choices=("float32", "bfloat16"))


def build(
    config: Config, source_vocabulary_size: int, target_vocabulary_size: int
) -> "EncoderDecoder":
    """Builds the model; raises `ConfigError` if parts of the config do not fit."""
    if config.tie_embeddings == "all":
        if source_vocabulary_size != target_vocabulary_size:
            raise ConfigError(
                "config.model.tie_embeddings: expected a joint vocabulary for 'all', found "
                f"{source_vocabulary_size} source and {target_vocabulary_size} target symbols"
            )
        if config.source_embedding_dim != config.target_embedding_dim:
            raise ConfigError(
                "config.model.tie_embeddings: expected embeddings of one depth for 'all', found "
                f"{config.source_embedding_dim} and {config.target_embedding_dim}"
            )
    try:
        reading = build_encoder(config)
        _check_parts(config, reading)
        functions = build_decoder(config, reading, source_vocabulary_size)
        reading.parameters, functions.parameters  # noqa: B018  (rejects parts that do not fit)
    except ValueError as error:
        raise ConfigError(f"config.model.{error}") from None
    readout = READOUTS.find(config.readout.name).build(
        config.readout,
        ReadoutSizes(
            target_vocabulary_size, functions.feature_dim, config.target_embedding_dim,
            is_tied=config.tie_embeddings != "none", memory_dim=reading.output_dim,
        ),
    )  # fmt: skip
    sizes = source_vocabulary_size, target_vocabulary_size
    return EncoderDecoder(config, *sizes, reading, functions, readout)


def _check_parts(config: Config, reading: encoder.SequenceEncoder) -> None:
    """Rejects parts of which one would leave another without effect."""
    is_initial_only = getattr(config.attention, "conditioning", None) == "initial_state"
    bridge = getattr(config.decoder, "bridge", None)
    reads_both_ways = bool(reading.finals) and len(reading.finals[-1].readings) > 1
    is_partial = bridge in ("backward", "copy_backward") and reads_both_ways
    if is_initial_only and (bridge == "zero" or is_partial):
        raise ValueError(
            "decoder.bridge: expected one that hands over all that the encoder has read, as "
            f"attention.conditioning is 'initial_state', found {bridge!r}"
        )
    cells = [getattr(config.decoder, "cell", None), *(final.cell for final in reading.finals)]
    if config.initialization.forget_bias and "lstm" not in cells:
        raise ValueError(
            "initialization.forget_bias: expected only with an lstm in encoder or decoder, "
            f"found {config.initialization.forget_bias}"
        )
    if is_initial_only and getattr(config.decoder, "variant", None) in ("gnmt", "gnmt_v2"):
        raise ValueError(
            "decoder.variant: expected 'paper' where attention.conditioning is 'initial_state', "
            f"since variants differ in their contexts, found {config.decoder.variant!r}"
        )
    if reading.makes_keys and not mechanism.reads_keys(config.attention):
        raise ValueError(
            f"encoder.name: expected one without keys of their own beside attention that reads "
            f"none, {mechanism.described(config.attention)}, found {config.encoder.name!r}"
        )
    positional = positional_refinements(config.attention)
    stacks = [part for part in (config.encoder, config.decoder) if hasattr(part, "self_attention")]
    if positional and stacks and all(part.self_attention is not None for part in stacks):
        raise ValueError(
            "attention.refinements: expected none that compare positions where every "
            "self_attention has its own, found "
            f"{', '.join(map(repr, positional))}"
        )


def build_encoder(config: Config) -> encoder.SequenceEncoder:
    """Builds the encoder's pure functions."""
    module = encoder.ENCODERS.find(config.encoder.name)
    return module.build(config.encoder, config.source_embedding_dim, config.attention)


def build_decoder(
    config: Config, reading: encoder.SequenceEncoder, source_vocabulary_size: int
) -> decoder.SequenceDecoder:
    """Builds the decoder's pure functions."""
    sizes = decoder.DecoderSizes(
        config.target_embedding_dim, {"source": reading}, source_vocabulary_size
    )
    module = decoder.DECODERS.find(config.decoder.name)
    return module.build(config.decoder, sizes, config.attention)


@dataclasses.dataclass(frozen=True)
class EncoderDecoder:
    """The model as pure functions of its parameters; see `types.Model`.

    Attributes:
      config: The model's config.
      source_vocabulary_size: How many source ids there are.
      target_vocabulary_size: How many target ids there are.
      encoder: The encoder's pure functions.
      decoder: The decoder's pure functions.
      readout: The readout's pure functions.
    """

    config: Config
    source_vocabulary_size: int
    target_vocabulary_size: int
    encoder: encoder.SequenceEncoder
    decoder: decoder.SequenceDecoder
    readout: Readout
    begins_from: ClassVar[str] = "source"

    @property
    def provides(self) -> dict[str, str | None]:
        """What may be asked of it; see `types.Model`."""
        parts = self.decoder.mechanism.parts
        is_there = {
            "alignment": parts.is_alignment,
            "last_word": self.decoder.knows_last_word or parts.spec.observes,
            "coverage": parts.remaining is not None,
        }
        predicted = {name: f"config.model.predictors.{name}" for name in self.config.predictors}
        return {**{name: None for name, there in is_there.items() if there}, **predicted}

    @property
    def module(self) -> "EncoderDecoderModule":
        """The Linen module that declares the parameters."""
        return EncoderDecoderModule(
            self.config,
            self.encoder,
            self.decoder,
            self.readout,
            self.source_vocabulary_size,
            self.target_vocabulary_size,
        )

    def init(self, rng: Array) -> Params:
        """Draws parameters."""
        batch = {
            "source": jnp.zeros((1, 2), jnp.int32),
            "source_mask": jnp.ones((1, 2), bool),
            "target": jnp.zeros((1, 2), jnp.int32),
            "target_mask": jnp.ones((1, 2), bool),
        }
        return self.module.init(rng, batch, Call())["params"]

    def parameter_axes(self) -> Params:
        """Returns the logical axes of every parameter."""
        sizes = self.source_vocabulary_size, self.target_vocabulary_size
        predictors = build_predictors(self.config.predictors, self.encoder.output_dim)
        return logical_axes(
            {
                "encoder": self.encoder.parameters,
                "decoder": self.decoder.parameters,
                **_tables(self.config, self.readout, *sizes),
                **{name: predictor.parameters for name, predictor in predictors.items()},
            }
        )

    def apply(self, params: Params, batch: Batch, call: Call = Call()) -> ModelOutput:
        """Runs the model on known targets."""
        return self._call(params, batch, call)

    def start(self, params: Params, batch: Batch, max_length: int) -> tuple[Any, Any]:
        """Encodes sources, with a hypothesis axis of one."""
        memory, state = self._call(params, batch, max_length, method="start")
        return jax.tree.map(lambda leaf: leaf[:, None], (memory, state))

    def step(
        self, params: Params, memory: Any, state: Any, tokens: Array
    ) -> tuple[Predictions, Array, Any]:
        """Feeds one token to every hypothesis."""
        return self._call(params, memory, state, tokens, method="step")

    def _call(self, params: Params, *arguments: Any, **keywords: Any) -> Any:
        if self.config.dtype != "float32":
            params = jax.tree.map(lambda leaf: leaf.astype(self.config.dtype), params)
        return self.module.apply({"params": params}, *arguments, **keywords)


class EncoderDecoderModule(nn.Module):
    """The parameters of an encoder-decoder.

    Attributes:
      config: The model's config.
      reading: The encoder's pure functions.
      writing: The decoder's pure functions.
      readout: The readout's pure functions.
      source_vocabulary_size: How many source ids there are.
      target_vocabulary_size: How many target ids there are.
    """

    config: Config
    reading: encoder.SequenceEncoder
    writing: decoder.SequenceDecoder
    readout: Readout
    source_vocabulary_size: int
    target_vocabulary_size: int

    def setup(self) -> None:
        """Declares embeddings, encoder, decoder, readout and predictors."""
        config = self.config
        self.encoder = encoder.Encoder(self.reading, config.initialization)
        self.decoder = decoder.Decoder(self.writing, config.initialization)
        sizes = self.source_vocabulary_size, self.target_vocabulary_size
        tables = _tables(config, self.readout, *sizes)
        self.tables = declare(self, tables, config.initialization)
        self.predictors = build_predictors(config.predictors, self.reading.output_dim)
        trees = {name: predictor.parameters for name, predictor in self.predictors.items()}
        self.predicting = declare(self, trees, config.initialization)

    def __call__(self, batch: Batch, call: Call) -> ModelOutput:
        """Runs the model on known targets."""
        encoded = self._encode(batch, call.fold(0))
        memory, state = self.decoder.start({"source": encoded}, 0)
        target, mask = batch["target"], batch["target_mask"]
        embedded = self._embed_target(shift_right(target, SpecialIds.BOS), call.fold(1))
        features, attended, state = self.decoder.run(
            memory, state, embedded, mask=mask, call=call.fold(2)
        )
        rate = self.config.output_dropout
        kept = dropout_factors(call.fold(3), rate, features.shape, features.dtype)
        last = self._embed_target(target[:, -1], call.fold(4))
        outputs = {
            name: predictor.predict(self.predicting[name], encoded)
            for name, predictor in self.predictors.items()
        }
        coverage = self.decoder.remaining(memory, state, last, mask[:, -1])
        if coverage is not None:
            outputs["coverage"] = coverage
        source = self.readout.prepare(self.tables, encoded, batch)
        predictions = self._predict(scale(features, kept), attended, source)
        return ModelOutput(predictions, attended, outputs)

    def start(self, batch: Batch, max_length: int) -> Any:
        """Encodes the sources; returns (memory, source of the readout), and the first state."""
        encoded = self._encode(batch)
        memory, state = self.decoder.start({"source": encoded}, max_length)
        return (memory, self.readout.prepare(self.tables, encoded, batch)), state

    def _encode(self, batch: Batch, call: Call = Call()) -> Encoded:
        name = "target_embedding" if self.config.tie_embeddings == "all" else "source_embedding"
        embedded = look_up(self.tables[name], batch["source"])
        kept = dropout_factors(
            call.fold(0), self.config.embedding_dropout, embedded.shape, embedded.dtype
        )
        encoded = self.encoder(scale(embedded, kept), batch["source_mask"], call.fold(1))
        return dataclasses.replace(encoded, aux={**encoded.aux, "source_ids": batch["source"]})

    def step(self, memory: Any, state: Any, tokens: Array) -> tuple[Predictions, Array, Any]:
        """Feeds one token to every hypothesis."""
        memory, source = memory
        embedded = self._embed_target(tokens)
        features, attended, state = self.decoder.step(memory, state, embedded)
        return self._predict(features, attended, source), attended.weights, state

    def _embed_target(self, tokens: Array, call: Call = Call()) -> Array:
        tokens = self.readout.input_ids(tokens)
        embedded = look_up(self.tables["target_embedding"], tokens)
        rate = self.config.embedding_dropout
        return scale(embedded, dropout_factors(call, rate, embedded.shape, embedded.dtype))

    def _predict(
        self, features: Array, attended: AttentionOutput, source: Any
    ) -> Predictions:
        step = Step(features, attended, self.tables["target_embedding"], source)
        return self.readout.predict(self.tables, step)


def _tables(
    config: Config, readout: Readout, source_vocabulary_size: int, target_vocabulary_size: int
) -> dict[str, Parameter]:
    """Returns the embeddings and what the readout has, in the order in which they are drawn."""
    table, rest = functools.partial(Parameter.of, "word_embedding"), dict(readout.parameters)
    depth = config.target_embedding_dim
    tables = {"target_embedding": table(vocab=target_vocabulary_size, embed=depth)}
    if "output_bias" in rest:  # before the source's, so that seeds keep their meaning
        tables["output_bias"] = rest.pop("output_bias")
    if config.tie_embeddings != "all":
        depth = config.source_embedding_dim
        tables["source_embedding"] = table(vocab=source_vocabulary_size, embed=depth)
    return {**tables, **rest}
