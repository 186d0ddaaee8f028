"""Language model: a decoder alone, which goes on from a prompt.

The sources of a task's batches are ignored, and what is measured is perplexity. A search continues
a prompt, with which the text begins.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Int

from attention_jax.configuration import setting
from attention_jax.discovery import build_part
from attention_jax.errors import at_field
from attention_jax.layers import mechanism
from attention_jax.layers.decoder import Decoder, DecoderSizes, SequenceDecoder
from attention_jax.layers.decoders import transformer
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Initialization, Parameter, declare, logical_axes
from attention_jax.layers.readout import READOUTS, Readout, ReadoutSizes, Step
from attention_jax.models.encoder_decoder_module import Written
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.lookup import look_up
from attention_jax.ops.masks import shift_right
from attention_jax.ops.predictions import Predictions, SoftmaxPredictions
from attention_jax.types import Array, Batch, Call, ModelOutput, Params, SpecialIds


@dataclasses.dataclass(frozen=True)
class Config:
    """A language model.

    Attributes:
      name: The model.
      embedding_dim: Depth of an embedded token, and of all layers.
      attention: How positions attend to those before them.
      decoder: The stack of layers; it has no `self_attention` of its own, and nothing aligns.
      output_dropout: Share of the features that is dropped before the vocabulary.
      tie_embeddings: Whether the embedding is the output matrix, too.
      initialization: How parameters start.
      readout: What the features are turned into predictions by; see `layers/readouts`.
      dtype: Of activations; parameters, softmax and losses are float32 always. With
        `JAX_ENABLE_X64=1`, whatever is float32 otherwise is float64.
    """

    task: ClassVar[str] = "continue"
    name: str = setting("language_model")
    embedding_dim: int = setting(128, at_least=1)
    attention: Any = setting({"name": "multi_head"}, named=mechanism.MECHANISMS.config)
    decoder: transformer.Config = setting(transformer.Config())
    output_dropout: float = setting(0.0, at_least=0.0, below=1.0)
    tie_embeddings: bool = setting(True)
    initialization: Initialization = setting(Initialization("xavier"))
    readout: Any = setting({"name": "softmax"}, named=READOUTS.config)
    dtype: str = setting("float32", choices=("float32", "bfloat16"))

    def __post_init__(self) -> None:
        """Rejects fields of the decoder that would change nothing."""
        if self.decoder.name != transformer.Config.name:
            raise ValueError(
                f"decoder.name: expected {transformer.Config.name!r} in a language model, found "
                f"{self.decoder.name!r}"
            )
        for name in ("alignment_layer", "alignment_head", "self_attention"):
            value = getattr(self.decoder, name)
            if value is not None:
                found = mechanism.described(value) if name == "self_attention" else value
                raise ValueError(
                    f"decoder.{name}: expected none in a language model, which has one attention, "
                    f"found {found}"
                )
        if self.initialization.forget_bias:
            raise ValueError(
                "initialization.forget_bias: expected 0 in a language model, which has no lstm, "
                f"found {self.initialization.forget_bias}"
            )


def build(
    config: Config, source_vocabulary_size: int, target_vocabulary_size: int
) -> "LanguageModel":
    """Builds the model; raises `ConfigError` if parts of the config do not fit."""
    try:
        functions = transformer.build(
            config.decoder, DecoderSizes(config.embedding_dim, {}), config.attention
        )
        depth = config.embedding_dim
        sizes = ReadoutSizes(target_vocabulary_size, depth, depth, is_tied=config.tie_embeddings)
        readout = build_part(config.readout, Readout, sizes)
    except ValueError as error:
        raise at_field("config.model", error) from None
    return LanguageModel(config, target_vocabulary_size, functions, readout)


@dataclasses.dataclass(frozen=True)
class LanguageModel:
    """Language model: pure functions of its parameters; see `types.Model`.

    Attributes:
      config: The model's config.
      vocabulary_size: How many ids there are.
      decoder: The decoder's pure functions, of which `first_state` takes the number of rows.
      readout: The readout's pure functions.
    """

    config: Any
    vocabulary_size: int
    decoder: SequenceDecoder
    readout: Readout
    begins_from: ClassVar[str] = "prompt"
    fields: ClassVar[Sequence[str]] = ()

    @property
    def provides(self) -> Mapping[str, str | None]:
        """What may be asked of it: what the readout provides."""
        return dict.fromkeys(self.readout.provides)

    @property
    def module(self) -> "LanguageModelModule":
        """The Linen module that declares the parameters."""
        return LanguageModelModule(self.config, self.decoder, self.readout, self.vocabulary_size)

    def init(self, rng: Array) -> Params:
        """Draws parameters."""
        return self.module.init(rng, method="initialize")["params"]

    def parameter_axes(self) -> Params:
        """Returns the logical axes of every parameter."""
        tables = _tables(self.config, self.readout, self.vocabulary_size)
        return logical_axes({"decoder": self.decoder.parameters, **tables})

    def apply(self, params: Params, batch: Batch, call: Call = Call()) -> ModelOutput:
        """Teacher forcing: runs the model on known texts."""
        return self._call(params, batch, call)

    def start(self, params: Params, batch: Batch, max_length: int) -> tuple[Any, Any]:
        """Makes room for one text for each prompt with which it begins."""
        # A prompt ends in EOS, as every field of tokens does; the text goes on in its place.
        begins = {"tokens": batch["prompt"], "length": batch["prompt_mask"].sum(axis=-1) - 1}
        rows = batch["prompt"].shape[0]
        begins["source"], state = self._call(params, rows, max_length, method="start")
        return jax.tree.map(lambda leaf: leaf[:, None], (begins, state))

    def slots(self, memory: Any) -> None:
        """Returns nothing, for nothing is attended to."""
        return None

    def step(
        self, params: Params, memory: Any, state: Any, tokens: Array
    ) -> tuple[Predictions, Array, Any]:
        """Feeds one token to every hypothesis; the weights are those of a single empty slot.

        As long as a text is at its beginning, the next token of that is certain.
        """
        position = state.decoder["position"]
        predictions, state = self._call(params, memory["source"], state, tokens, method="step")
        weights = jnp.zeros((*tokens.shape, 1))
        return _begin(predictions, memory, position), weights, state

    def _call(self, params: Params, *arguments: Any, **keywords: Any) -> Any:
        if self.config.dtype != "float32":
            # Mixed precision: activations are of this type, gradients reach the float32 parameters.
            params = jax.tree.map(lambda leaf: leaf.astype(self.config.dtype), params)
        return self.module.apply({"params": params}, *arguments, **keywords)


class LanguageModelModule(nn.Module):
    """Language model as a Linen module, which owns the parameters.

    Attributes:
      config: The model's config.
      writing: The decoder's pure functions.
      readout: The readout's pure functions.
      vocabulary_size: How many ids there are.
    """

    config: Any
    writing: SequenceDecoder
    readout: Readout
    vocabulary_size: int

    def setup(self) -> None:
        """Declares embedding, decoder and readout."""
        config = self.config
        self.decoder = Decoder(self.writing, config.initialization)
        tables = _tables(config, self.readout, self.vocabulary_size)
        self.tables = declare(self, tables, config.initialization)

    def initialize(self) -> None:
        """Draws the parameters, and computes nothing of them."""
        self.decoder.initialize()

    def __call__(self, batch: Batch, call: Call) -> ModelOutput:
        """Runs the model on known texts."""
        target, mask = batch["target"], batch["target_mask"]
        inputs = self.readout.input_ids(shift_right(target, SpecialIds.BOS))
        embedded = look_up(self.tables["embedding"], inputs)
        # No room for a cache: known texts are decoded without one.
        source, state = self.start(target.shape[0], 0)
        decoded = self.decoder.run(
            (), state.decoder, embedded, mask=mask, call=call.fold(0).within("decoder")
        )
        features = decoded.features
        rate = self.config.output_dropout
        kept = dropout_factors(call.fold(1), rate, features.shape, features.dtype)
        outputs = {f"decoder/{path}": output for path, output in decoded.outputs.items()}
        source = jax.tree.map(lambda leaf: leaf[:, None], source)  # as a search has it
        step = Step(scale(features, kept), None, self.tables["embedding"], source)
        predictions, _ = self.readout.run(self.tables, step, target, mask)
        return ModelOutput(predictions, None, outputs)

    def start(self, rows: int, max_length: int) -> tuple[Any, Written]:
        """Returns what the readout makes of no source, and the state before the first tokens."""
        dtype = self.tables["embedding"].dtype
        # A source without slots: of some readouts, the first state is as many rows as it has.
        nothing = Encoded(jnp.zeros((rows, 0, 0), dtype), jnp.zeros((rows, 0), bool))
        source = self.readout.prepare(self.tables, nothing, {})
        state = self.writing.first_state(self.decoder.weights, rows, max_length, dtype)
        return source, Written(state, self.readout.init_state(self.tables, source))

    def step(self, source: Any, state: Written, tokens: Array) -> tuple[Predictions, Written]:
        """Feeds one token to every hypothesis."""
        table = self.tables["embedding"]
        embedded = look_up(table, self.readout.input_ids(tokens))
        features, _, decoding = self.decoder.step((), state.decoder, embedded)
        found = self.readout.step(
            self.tables, Step(features, None, table, source, tokens, state.readout)
        )
        return found.predictions, Written(decoding, found.state)


def _tables(config: Any, readout: Readout, vocabulary_size: int) -> dict[str, Parameter]:
    """Returns the embedding, and what the readout has."""
    embedding = Parameter.of("word_embedding", vocab=vocabulary_size, embed=config.embedding_dim)
    return {"embedding": embedding, **readout.parameters}


def _begin(
    predictions: Predictions, begins: Mapping[str, Array], position: Int[Array, "B K"]
) -> SoftmaxPredictions:
    """Prompt: makes the token at `position` certain where the beginning has one there."""
    # Unnormalised: a softmax over the replaced logits does the rest.
    logits, _ = predictions.scores()
    tokens, length = begins["tokens"], begins["length"]
    # B K -> B K 1; beyond the prompt any token will do, the last line does not use it.
    here = jnp.minimum(position, tokens.shape[-1] - 1)[..., None]
    token = jnp.take_along_axis(tokens, here, axis=-1)
    # Log-probabilities: zero for the prompt's token, which a softmax leaves as they are.
    certain = jnp.where(jnp.arange(logits.shape[-1]) == token, 0.0, -jnp.inf)
    return SoftmaxPredictions(jnp.where((position < length)[..., None], certain, logits))
