"""The encoder-decoder: sources with any encoder, attention, any decoder, readout.

Everything that does not depend on the recurrence is computed for all steps at once: projections
of embeddings and keys before the loop, readout and logits after it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from attention_jax.configuration import setting
from attention_jax.discovery import module_of
from attention_jax.errors import ConfigError
from attention_jax.layers import decoder, encoder, mechanism
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.layers.input import InputSizes
from attention_jax.layers.parameters import Initialization, Parameter, declare, logical_axes
from attention_jax.layers.predictor import PREDICTORS, build_predictors
from attention_jax.layers.readout import READOUTS, Readout, ReadoutSizes, Step, sums_over_slots
from attention_jax.layers.refinement import positional_refinements
from attention_jax.layers.source import (
    Source,
    SourceConfig,
    checked_sources,
    one_source,
    side_by_side,
)
from attention_jax.models.online import why_it_waits
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.lookup import look_up
from attention_jax.ops.masks import shift_right
from attention_jax.ops.predictions import Predictions
from attention_jax.types import (
    Array,
    Batch,
    Call,
    ModelOutput,
    Params,
    Slots,
    SpecialIds,
)

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
      tie_embeddings: `target` uses the target embedding as output matrix too, `all` also as
        embedding of all sources (joint vocabularies only).
      initialization: How parameters start.
      readout: What the features are turned into predictions by; see `layers/readouts`.
      predictors: What is predicted beside the target, for objectives that teach it, by name; see
        `layers/predictors`.
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
    tie_embeddings: str = setting("none", choices=_TYINGS)
    initialization: Initialization = dataclasses.field(default_factory=Initialization)
    FORMER: ClassVar[Mapping[str, Any]] = {"fertility_dim": 0}  # predictors.fertility.hidden_dim
    RENAMED: ClassVar[Mapping[str, str]] = {
        "encoder": "sources.source.encoder",
        "source_embedding_dim": "sources.source.input.embedding_dim",
    }
    readout: Any = setting({"name": "softmax"}, named=READOUTS.config)
    predictors: Mapping[str, Any] = setting({}, members=PREDICTORS.config)
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
        _check_tying(config, sources, *sizes)
        for source in sources:
            _check_parts(config, source)
        functions = build_decoder(config, sources)
        for source in sources:
            # Declared here once, so that a mistake is reported before anything is compiled.
            source.encoder.parameters  # noqa: B018  (rejects parts that do not fit)
        functions.parameters  # noqa: B018
        readout = _build_readout(config, sources, functions, target_vocabulary_size)
    except ValueError as error:
        raise ConfigError(f"config.model.{error}") from None
    return EncoderDecoder(config, *sizes, sources, functions, readout)


def _build_readout(
    config: Config,
    sources: tuple[Source, ...],
    functions: decoder.SequenceDecoder,
    vocabulary_size: int,
) -> Readout:
    """Builds the readout; raises `ValueError` where it is not for what the decoder returns."""
    if sums_over_slots(config.readout) and functions.reads_contexts:
        raise ValueError(
            "decoder.name: expected one that reads no contexts, such as 'transducer', beside the "
            f"readout {config.readout.name!r}, found {config.decoder.name!r}"
        )
    if not (sums_over_slots(config.readout) or functions.reads_contexts):
        raise ValueError(
            "readout.name: expected one that reads the source, such as 'marginal', beside the "
            f"decoder {config.decoder.name!r}, found {config.readout.name!r}"
        )
    sizes = ReadoutSizes(
        vocabulary_size, functions.feature_dim, config.target_embedding_dim,
        is_tied=config.tie_embeddings != "none", memory_dim=sources[0].encoder.output_dim,
        mechanism=functions.mechanism, attention=config.attention,
    )  # fmt: skip
    return module_of(config.readout).build(config.readout, sizes)


def _check_tying(
    config: Config, sources: tuple[Source, ...], source_size: int, target_size: int
) -> None:
    """Weight tying: rejects one table for vocabularies or depths that differ."""
    if config.tie_embeddings != "all":
        return
    if source_size != target_size:
        raise ValueError(
            "tie_embeddings: expected a joint vocabulary for 'all', found "
            f"{source_size} source and {target_size} target symbols"
        )
    for source in sources:
        if source.input.vocabulary_size is None:
            raise ValueError(
                "tie_embeddings: expected sources of tokens for 'all', found "
                f"sources.{source.name}.input.name={config.sources[source.name].input.name!r}"
            )
        if source.input.depth != config.target_embedding_dim:
            raise ValueError(
                "tie_embeddings: expected embeddings of one depth for 'all', found "
                f"{source.input.depth} and {config.target_embedding_dim}"
            )


def _check_parts(config: Config, source: Source) -> None:
    """Rejects parts of which one would leave another without effect."""
    reading, chosen = source.encoder, config.sources[source.name].encoder
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
    if reading.makes_keys and not config.attention.reads_keys:
        raise ValueError(
            f"sources.{source.name}.encoder.name: expected one without keys of their own beside "
            f"attention that reads none, {mechanism.described(config.attention)}, found "
            f"{chosen.name!r}"
        )
    positional = positional_refinements(config.attention)
    stacks = [part for part in (chosen, config.decoder) if hasattr(part, "self_attention")]
    if positional and stacks and all(part.self_attention is not None for part in stacks):
        raise ValueError(
            "attention.refinements: expected none that compare positions where every "
            "self_attention has its own, found "
            f"{', '.join(map(repr, positional))}"
        )


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
    module = module_of(config.decoder)
    try:
        return module.build(config.decoder, sizes, config.attention)
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
    """

    config: Config
    source_vocabulary_size: int
    target_vocabulary_size: int
    sources: tuple[Source, ...]
    decoder: decoder.SequenceDecoder
    readout: Readout

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
        attention, is_single = self.decoder.mechanism, len(self.sources) == 1
        is_aligned = attention.is_alignment or sums_over_slots(self.config.readout)
        is_there = {
            "alignment": is_aligned and is_single,
            "slot_for_each_token": is_single and self.encoder.keeps_positions,
            "last_word": self.decoder.knows_last_word or decoder.WRITTEN_WORD in attention.observes,
            "coverage": attention.tells_remaining,
            "online": why_it_waits(self) is None,
        }
        taught = dict.fromkeys(attention.provides, "config.model.attention")
        taught |= {name: f"config.model.predictors.{name}" for name in self.config.predictors}
        return {**{name: None for name, there in is_there.items() if there}, **taught}

    @property
    def module(self) -> "EncoderDecoderModule":
        """The Linen module that declares the parameters."""
        return EncoderDecoderModule(
            self.config, self.sources, self.decoder, self.readout, self.target_vocabulary_size
        )

    def init(self, rng: Array) -> Params:
        """Draws parameters."""
        batch = {"target": jnp.zeros((1, 2), jnp.int32), "target_mask": jnp.ones((1, 2), bool)}
        for source in self.sources:
            batch |= source.input.example(1, 2)
        return self.module.init(rng, batch, Call())["params"]

    def parameter_axes(self) -> Params:
        """Returns the logical axes of every parameter."""
        sources = self.sources
        predictors = build_predictors(self.config.predictors, self.encoder.output_dim)
        return logical_axes(
            {
                **{source.encoder_name: source.encoder.parameters for source in sources},
                "decoder": self.decoder.parameters,
                **_tables(self.config, sources, self.readout, self.target_vocabulary_size),
                **{name: predictor.parameters for name, predictor in predictors.items()},
            }
        )

    def apply(self, params: Params, batch: Batch, call: Call = Call()) -> ModelOutput:
        """Teacher forcing: runs the model on known targets."""
        return self._call(params, batch, call)

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

    def _call(self, params: Params, *arguments: Any, **keywords: Any) -> Any:
        if self.config.dtype != "float32":
            # Mixed precision: activations are of this type, gradients reach the float32 parameters.
            params = jax.tree.map(lambda leaf: leaf.astype(self.config.dtype), params)
        return self.module.apply({"params": params}, *arguments, **keywords)


class Searched(NamedTuple):
    """Search memory: what a search reads at every step.

    Attributes:
      memory: What the decoder attends to.
      source: What the readout has prepared of the source.
      slots: What the slots stand for that are attended to.
    """

    memory: Any
    source: Any
    slots: Slots


class Written(NamedTuple):
    """What a search has written so far, as far as its next step depends on it.

    Attributes:
      decoder: The decoder's state.
      readout: The readout's.
    """

    decoder: Any
    readout: Any


class EncoderDecoderModule(nn.Module):
    """Encoder-decoder as a Linen module, which owns the parameters.

    Attributes:
      config: The model's config.
      sources: The sources' pure functions.
      writing: The decoder's pure functions.
      readout: The readout's pure functions.
      target_vocabulary_size: How many target ids there are.
    """

    config: Config
    sources: tuple[Source, ...]
    writing: decoder.SequenceDecoder
    readout: Readout
    target_vocabulary_size: int

    def setup(self) -> None:
        """Declares embeddings, encoders, decoder, readout and predictors."""
        config = self.config
        for source in self.sources:
            module = encoder.Encoder(source.encoder, config.initialization)
            setattr(self, source.encoder_name, module)
        self.decoder = decoder.Decoder(self.writing, config.initialization)
        tables = _tables(config, self.sources, self.readout, self.target_vocabulary_size)
        self.tables = declare(self, tables, config.initialization)
        depth = self.sources[0].encoder.output_dim
        self.predictors = build_predictors(config.predictors, depth)
        trees = {name: predictor.parameters for name, predictor in self.predictors.items()}
        self.predicting = declare(self, trees, config.initialization)

    def __call__(self, batch: Batch, call: Call) -> ModelOutput:
        """Teacher forcing: runs the model on known targets."""
        sources, slots = self._encode(batch, call.fold(0))
        # No room for a cache: known targets are decoded without one.
        memory, state = self.decoder.start(sources, 0)
        target, mask = known = batch["target"], batch["target_mask"]
        before = shift_right(target, SpecialIds.BOS)
        embedded = self._embed_target(before, call.fold(1))
        decoded = self.decoder.run(
            memory, state, embedded, told=decoder.told(before), mask=mask,
            call=call.fold(2).within("decoder"),
        )  # fmt: skip
        features, attended = decoded.features, decoded.attention
        rate = self.config.output_dropout
        kept = dropout_factors(call.fold(3), rate, features.shape, features.dtype)
        if not target.shape[1]:  # no word is the last one; it counts as padding
            target, mask = jnp.pad(target, ((0, 0), (0, 1))), jnp.pad(mask, ((0, 0), (0, 1)))
        # No step comes after the last word to observe it: `remaining` is given it instead.
        last = self._embed_target(target[:, -1], call.fold(4))
        encoded = first_source(sources)
        outputs: dict[str, Any] = {
            name: predictor.predict(self.predicting[name], encoded)
            for name, predictor in self.predictors.items()
        }
        outputs["slots"] = slots
        outputs |= self._layers(sources, decoded.outputs)
        coverage = self.decoder.remaining(
            memory, decoded.state, last, mask[:, -1], decoder.told(target[:, -1])
        )
        if coverage is not None:
            outputs["coverage"] = coverage
        source = self.readout.prepare(self.tables, encoded, batch)
        source = jax.tree.map(lambda leaf: leaf[:, None], source)  # as `start` has it
        step = Step(scale(features, kept), attended, self.tables["target_embedding"], source)
        predictions, attended = self.readout.run(self.tables, step, *known)
        return ModelOutput(predictions, attended, outputs)

    def start(self, batch: Batch, max_length: int) -> tuple["Searched", "Written"]:
        """Encodes the sources; returns what is searched for, and the first state."""
        sources, slots = self._encode(batch)
        memory, state = self.decoder.start(sources, max_length)
        source = self.readout.prepare(self.tables, first_source(sources), batch)
        state = Written(state, self.readout.init_state(self.tables, source))
        return Searched(memory, source, slots), state

    def _encode(self, batch: Batch, call: Call = Call()) -> tuple[Sources, Slots]:
        sources, slots = {}, []
        for number, source in enumerate(self.sources):
            # The first has the call's own key, whatever there is beside it.
            part = call.fold(1 + number) if number else call
            read = getattr(self, source.encoder_name)
            # Masks of ablated heads are named by the paths of parameters, as are the outputs below.
            part = part.within(source.encoder_name)
            sources[source.name], of_source = source.encode(self.tables, read, batch, part)
            slots.append(of_source)
        return sources, side_by_side(slots)

    def _layers(self, sources: Sources, of_decoder: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what layers have computed, by the paths of their parameters."""
        found = {f"decoder/{path}": output for path, output in of_decoder.items()}
        for source in self.sources:
            encoded = sources[source.name]
            for path, output in encoded.outputs.items():
                found[f"{source.encoder_name}/{path}"] = output
        return found

    def step(
        self, memory: "Searched", state: "Written", tokens: Array
    ) -> tuple[Predictions, Array, "Written"]:
        """Feeds one token to every hypothesis."""
        embedded = self._embed_target(tokens)
        features, attended, decoding = self.decoder.step(
            memory.memory, state.decoder, embedded, decoder.told(tokens)
        )
        table = self.tables["target_embedding"]
        step = Step(features, attended, table, memory.source, tokens, state.readout)
        predictions, attended, reading = self.readout.step(self.tables, step)
        return predictions, attended.weights, Written(decoding, reading)

    def _embed_target(self, tokens: Array, call: Call = Call()) -> Array:
        tokens = self.readout.input_ids(tokens)
        embedded = look_up(self.tables["target_embedding"], tokens)
        rate = self.config.embedding_dropout
        return scale(embedded, dropout_factors(call, rate, embedded.shape, embedded.dtype))


def _tables(
    config: Config, sources: tuple[Source, ...], readout: Readout, vocabulary_size: int
) -> dict[str, Any]:
    """Returns what inputs and the readout have, in the order in which it is drawn."""
    rest, depth = dict(readout.parameters), config.target_embedding_dim
    tables = {
        "target_embedding": Parameter.of("word_embedding", vocab=vocabulary_size, embed=depth)
    }
    if "output_bias" in rest:  # before the sources', so that seeds keep their meaning
        tables["output_bias"] = rest.pop("output_bias")
    for source in sources:
        tables |= source.tables
    return {**tables, **rest}
