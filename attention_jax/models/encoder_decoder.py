"""The encoder-decoder: sources with any encoder, attention, any decoder, readout.

What its parts must agree on is in `encoder_decoder_checks`, the Linen module that runs them in
`encoder_decoder_module`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax

from attention_jax.configuration import setting
from attention_jax.discovery import build_part
from attention_jax.errors import ConfigError, at_field
from attention_jax.layers import decoder, encoder, mechanism
from attention_jax.layers.aligner import ALIGNERS, Aligner, AlignerSizes
from attention_jax.layers.copying import WORDS
from attention_jax.layers.input import InputSizes
from attention_jax.layers.parameters import Initialization, logical_axes
from attention_jax.layers.predictor import PREDICTORS, build_predictors
from attention_jax.layers.readout import READOUTS, Readout, ReadoutSizes, sums_over_slots
from attention_jax.layers.selective_read import with_selective_read
from attention_jax.layers.source import Source, SourceConfig, checked_sources, one_source
from attention_jax.models.encoder_decoder_checks import check_parts, check_readout, check_tying
from attention_jax.models.encoder_decoder_module import (
    ALIGNER,
    EncoderDecoderModule,
    table_parameters,
)
from attention_jax.models.online import why_it_waits
from attention_jax.ops.predictions import Predictions
from attention_jax.ops.spans import to_positions
from attention_jax.types import Array, Batch, Call, ModelOutput, Params, Slots

_TYINGS = ("none", "target", "all")


@dataclasses.dataclass(frozen=True)
class Config:
    """An encoder-decoder.

    Attributes:
      name: The model.
      sources: How each source is read, by its name; a plain translation has one, called `source`.
      target_embedding_dim: Depth of an embedded target token.
      attention: How the decoder attends to them; `none` for a fixed vector. Encoders and decoders
        that attend to their own past or present do so in the same way, unless told otherwise.
      decoder: In which order the decoder attends, updates and reads out.
      embedding_dropout: Share of each embedded token, or other input, that is dropped.
      output_dropout: Share of the features that is dropped before the vocabulary.
      scheduled_sampling: In training, share of the known words before each target that are replaced
        by words that the model would have written; see `ops.scheduled_sampling`.
      tie_embeddings: `target` uses the target embedding as output matrix too, `all` also as
        embedding of all sources (joint vocabularies only).
      initialization: How parameters start.
      readout: What the features are turned into predictions by; see `layers/readouts`.
      predictors: What is predicted beside the target, for objectives that teach it, by name; see
        `layers/predictors`.
      aligner: What says the links between source and target; see `layers/aligners`.
      dtype: Of activations; parameters, softmax and losses are float32 always. With
        `JAX_ENABLE_X64=1`, whatever is float32 otherwise is float64.
    """

    name: str = setting("encoder_decoder")
    sources: Mapping[str, SourceConfig] = dataclasses.field(default_factory=one_source)
    target_embedding_dim: int = setting(128, at_least=1)
    attention: Any = setting({"name": "bahdanau"}, named=mechanism.MECHANISMS.config)
    decoder: Any = setting({"name": "conditional_gru"}, named=decoder.DECODERS.config)
    embedding_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    output_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    scheduled_sampling: float = setting(0.0, at_least=0.0, at_most=1.0)
    tie_embeddings: str = setting("none", choices=_TYINGS)
    initialization: Initialization = dataclasses.field(default_factory=Initialization)
    FORMER: ClassVar[Mapping[str, Any]] = {"fertility_dim": 0}  # predictors.fertility.hidden_dim
    RENAMED: ClassVar[Mapping[str, str]] = {
        "encoder": "sources.source.encoder",
        "source_embedding_dim": "sources.source.input.embedding_dim",
    }
    readout: Any = setting({"name": "softmax"}, named=READOUTS.config)
    predictors: Mapping[str, Any] = setting({}, members=PREDICTORS.config)
    aligner: Any = setting({"name": "attention"}, named=ALIGNERS.config)
    dtype: str = setting("float32", choices=("float32", "bfloat16"))

    def __post_init__(self) -> None:
        """Checks the names of sources."""
        object.__setattr__(self, "sources", checked_sources(self.sources))


def build(
    config: Config, source_vocabulary_size: int, target_vocabulary_size: int
) -> "EncoderDecoder":
    """Builds the model; raises `ConfigError` if parts of the config do not fit."""
    sizes = source_vocabulary_size, target_vocabulary_size
    try:
        sources = build_sources(config, source_vocabulary_size)
        check_tying(config, sources, *sizes)
        for source in sources:
            check_parts(config, source)
        functions = build_decoder(config, sources)
        for source in sources:
            # Declared here once, so that a mistake is reported before anything is compiled.
            source.encoder.parameters  # noqa: B018  (rejects parts that do not fit)
        functions.parameters  # noqa: B018
        readout = _build_readout(config, sources, functions, target_vocabulary_size)
    except ValueError as error:
        raise at_field("config.model", error) from None
    aligner = build_part(config.aligner, Aligner, AlignerSizes(
        sources[0].encoder.output_dim, functions.feature_dim, config.target_embedding_dim
    ))  # fmt: skip
    model = EncoderDecoder(config, *sizes, sources, functions, readout, aligner)
    if aligner.is_two_way and not model.encoder.keeps_positions:
        raise ConfigError(
            "config.model.aligner.two_way: expected False beside an encoder that merges positions, "
            "found True"
        )
    if aligner.is_separate and "alignment" not in model.provides:
        raise ConfigError(
            "config.model.aligner.name: expected 'attention' in a model that does not attend to "
            f"source positions (config.model.attention), found {config.aligner.name!r}"
        )
    return model


def _build_readout(
    config: Config,
    sources: tuple[Source, ...],
    functions: decoder.SequenceDecoder,
    vocabulary_size: int,
) -> Readout:
    """Builds the readout; raises `ValueError` where it is not for what the decoder returns."""
    check_readout(config, functions)
    sizes = ReadoutSizes(
        vocabulary_size, functions.feature_dim, config.target_embedding_dim,
        is_tied=config.tie_embeddings != "none", memory_dim=sources[0].encoder.output_dim,
        mechanism=functions.mechanism, attention=config.attention,
        slot_symbols=sources[0].slot_vocabulary_size if len(sources) == 1 else None,
    )  # fmt: skip
    return build_part(config.readout, Readout, sizes)


def build_sources(config: Config, vocabulary_size: int) -> tuple[Source, ...]:
    """Builds the sources' pure functions."""
    is_tied = config.tie_embeddings == "all"
    return tuple(
        Source.build(
            chosen,
            InputSizes(name, vocabulary_size, is_tied, config.embedding_dropout),
            config.attention,
        )
        for name, chosen in config.sources.items()
    )


def build_decoder(config: Config, sources: tuple[Source, ...]) -> decoder.SequenceDecoder:
    """Builds the decoder's pure functions."""
    encoders = {source.name: source.encoder for source in sources}
    sizes = decoder.DecoderSizes(
        config.target_embedding_dim, encoders, sources[0].slot_vocabulary_size
    )

    def build(sizes: decoder.DecoderSizes) -> decoder.SequenceDecoder:
        return build_part(config.decoder, decoder.SequenceDecoder, sizes, config.attention)

    try:
        if getattr(config.readout, "selective_read", False):
            return with_selective_read(build, sizes, WORDS, config.decoder.name)
        return build(sizes)
    except ValueError as error:
        if sources[0].encoder.keeps_positions or "source_vocabulary_size" not in str(error):
            raise
        name = config.sources[sources[0].name].encoder.name
        raise ValueError(f"{error}: no slot of encoder {name!r} is one token") from None


@dataclasses.dataclass(frozen=True)
class EncoderDecoder:
    """Encoder-decoder: the model as pure functions of its parameters; see `types.Model`.

    Attributes:
      config: The model's config.
      source_vocabulary_size: How many source ids there are.
      target_vocabulary_size: How many target ids there are.
      sources: What is read, each with its input and its encoder; a decoder starts from the first.
      decoder: The decoder's pure functions.
      readout: The readout's pure functions.
      aligner: The aligner's pure functions.
    """

    config: Config
    source_vocabulary_size: int
    target_vocabulary_size: int
    sources: tuple[Source, ...]
    decoder: decoder.SequenceDecoder
    readout: Readout
    aligner: Aligner

    @property
    def begins_from(self) -> str:
        """The first source, whose length limits that of outputs."""
        return self.sources[0].name

    @property
    def fields(self) -> tuple[str, ...]:
        """What the sources' inputs and the readout read."""
        of_inputs = (name for source in self.sources for name in source.input.fields)
        return (*of_inputs, *self.readout.fields)

    @property
    def encoder(self) -> encoder.SequenceEncoder:
        """The encoder of the first source, which the decoder starts from."""
        return self.sources[0].encoder

    @property
    def provides(self) -> dict[str, str | None]:
        """What may be asked of it; see `types.Model`."""
        attention = self.decoder.mechanism
        is_aligned = attention.traits.is_alignment or sums_over_slots(self.config.readout)
        is_separate = self.aligner.is_separate  # beside attention that aligns, too
        is_there = {
            "alignment": is_aligned,
            "slot_for_each_token": len(self.sources) == 1 and self.encoder.keeps_positions,
            "last_word": decoder.WRITTEN_WORD in attention.observes or is_separate,
            "coverage": attention.tells_remaining,
            "online": why_it_waits(self) is None,
            "shortlist": self.readout.takes_shortlist,
            "reads_ahead": self.aligner.reads_ahead,
            "opposite_alignment": self.aligner.is_two_way,
        }
        taught = dict.fromkeys(attention.provides, "config.model.attention")
        taught |= {name: f"config.model.predictors.{name}" for name in self.config.predictors}
        taught |= {ALIGNER: "config.model.aligner"} if is_separate else {}
        is_there |= dict.fromkeys((*self.decoder.provides, *self.readout.provides), True)
        return {**{name: None for name, there in is_there.items() if there}, **taught}

    @property
    def module(self) -> EncoderDecoderModule:
        """The Linen module that declares the parameters."""
        return EncoderDecoderModule(
            self.config, self.sources, self.decoder, self.readout, self.aligner,
            self.target_vocabulary_size,
        )  # fmt: skip

    def init(self, rng: Array) -> Params:
        """Draws parameters."""
        return self.module.init(rng, method="initialize")["params"]

    def parameter_axes(self) -> Params:
        """Returns the logical axes of every parameter."""
        sources = self.sources
        predictors = build_predictors(self.config.predictors, self.encoder.output_dim)
        return logical_axes(
            {
                **{source.encoder_name: source.encoder.parameters for source in sources},
                "decoder": self.decoder.parameters,
                **table_parameters(self.config, sources, self.readout, self.target_vocabulary_size),
                **{name: predictor.parameters for name, predictor in predictors.items()},
                **({ALIGNER: self.aligner.parameters} if self.aligner.parameters else {}),
            }
        )

    def apply(self, params: Params, batch: Batch, call: Call = Call()) -> ModelOutput:
        """Teacher forcing: runs the model on known targets."""
        return self._call(params, batch, call)

    def embed(self, params: Params, batch: Batch) -> dict[str, Array]:
        """Returns the embedded positions of the first source, by their path in a call."""
        return self._call(params, batch, method="embed")

    def value_norms(self, params: Params, batch: Batch) -> Array:
        """Norm-based analysis of the attention that stands for the decoder's, `B T S`."""
        output = self.apply(params, batch)
        searched, _ = self.start(params, batch, 0)
        memory = jax.tree.map(lambda leaf: leaf[:, 0], searched.memory)  # B 1 ... -> B ...
        norms = self.decoder.value_norms(params["decoder"], memory, output.attention)
        spans = output.outputs["slots"].spans
        if spans is None:
            return norms
        return to_positions(norms, spans, batch[self.begins_from].shape[1])  # B T slots -> B T S

    def start(self, params: Params, batch: Batch, max_length: int) -> tuple[Any, Any]:
        """Encodes sources, with a hypothesis axis of one."""
        memory, state = self._call(params, batch, max_length, method="start")
        # B ... -> B 1 ...: a search repeats it for its hypotheses.
        return jax.tree.map(lambda leaf: leaf[:, None], (memory, state))

    def slots(self, memory: Any) -> Slots:
        """Returns what the slots of a memory stand for."""
        return jax.tree.map(lambda leaf: leaf[:, 0], memory.slots)

    def step(
        self, params: Params, memory: Any, state: Any, tokens: Array
    ) -> tuple[Predictions, Array, Any]:
        """Feeds one token to every hypothesis."""
        return self._call(params, memory, state, tokens, method="step")

    def shortlisted(self, params: Params, ids: Array) -> tuple["EncoderDecoder", Params]:
        """Returns the model that writes some tokens of the vocabulary; see `ShortlistModel`."""
        readout, tables = self.readout.shortlisted(params, params["target_embedding"], ids)
        kept = {name: tree for name, tree in params.items() if name not in self.readout.parameters}
        return dataclasses.replace(self, readout=readout), {**kept, **tables}

    def _call(self, params: Params, *arguments: Any, **keywords: Any) -> Any:
        if self.config.dtype != "float32":
            # Mixed precision: activations are of this type, gradients reach the float32 parameters.
            params = jax.tree.map(lambda leaf: leaf.astype(self.config.dtype), params)
        return self.module.apply({"params": params}, *arguments, **keywords)
