"""The encoder-decoder as a Linen module: how its parameters are declared and used.

Everything that does not depend on the recurrence is computed for all steps at once: projections
of embeddings and keys before the loop, readout and logits after it.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import linen as nn

from attention_jax.layers import decoder, encoder
from attention_jax.layers.aligner import Aligner
from attention_jax.layers.encoder import Sources, first_source
from attention_jax.layers.parameters import Parameter, declare
from attention_jax.layers.predictor import build_predictors
from attention_jax.layers.readout import Readout, Step
from attention_jax.layers.several_sources import of_sources
from attention_jax.layers.source import INPUT, Source
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.lookup import look_up
from attention_jax.ops.masks import shift_right
from attention_jax.ops.predictions import LimitedPredictions, Predictions
from attention_jax.ops.scheduled_sampling import scheduled_inputs
from attention_jax.ops.step_pointer import IDLE
from attention_jax.types import Array, Batch, Call, ModelOutput, Params, Slots, SpecialIds

ALIGNER = "aligner"  # the name of its parameters


class Searched(NamedTuple):
    """Search memory: what a search reads at every step.

    Attributes:
      memory: What the decoder attends to.
      source: What the readout has prepared of the source.
      slots: What the slots stand for that are attended to.
      aligned: What the aligner has prepared of the source.
    """

    memory: Any
    source: Any
    slots: Slots
    aligned: Any


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
      aligner: The aligner's pure functions.
      target_vocabulary_size: How many target ids there are.
    """

    config: Any
    sources: tuple[Source, ...]
    writing: decoder.SequenceDecoder
    readout: Readout
    aligner: Aligner
    target_vocabulary_size: int

    def setup(self) -> None:
        """Declares embeddings, encoders, decoder, readout, predictors and aligner."""
        config = self.config
        for source in self.sources:
            module = encoder.Encoder(source.encoder, config.initialization)
            setattr(self, source.encoder_name, module)
        self.decoder = decoder.Decoder(self.writing, config.initialization)
        tables = table_parameters(config, self.sources, self.readout, self.target_vocabulary_size)
        self.tables = declare(self, tables, config.initialization)
        depth = self.sources[0].encoder.output_dim
        self.predictors = build_predictors(config.predictors, depth)
        trees = {name: predictor.parameters for name, predictor in self.predictors.items()}
        self.predicting = declare(self, trees, config.initialization)
        trees = {ALIGNER: self.aligner.parameters} if self.aligner.parameters else {}
        self.aligning = declare(self, trees, config.initialization)

    def initialize(self) -> None:
        """Draws the parameters, and computes nothing of them."""
        for source in self.sources:
            getattr(self, source.encoder_name).initialize()
        self.decoder.initialize()

    def __call__(self, batch: Batch, call: Call) -> ModelOutput:
        """Teacher forcing: runs the model on known targets."""
        sources, slots = self._encode(batch, call.fold(0))
        # No room for a cache: known targets are decoded without one.
        memory, state = self.decoder.start(sources, 0)
        target, mask = known = batch["target"], batch["target_mask"]
        before = shift_right(target, SpecialIds.BOS)
        encoded = first_source(sources)
        prepared = (
            self.readout.prepare(self.tables, encoded, batch),
            self.aligner.prepare(self._of_aligner, encoded),
        )
        # B ... -> B 1 ..., as `start` has it
        source, aligned = jax.tree.map(lambda leaf: leaf[:, None], prepared)

        def write(before: Array) -> tuple[decoder.Decoded, Predictions, Any, tuple]:
            embedded = self._embed_target(before, call.fold(1))
            decoded = self.decoder.run(
                memory, state, embedded, told=decoder.told(before), mask=mask,
                call=call.fold(2).within("decoder"),
            )  # fmt: skip
            features, rate = decoded.features, self.config.output_dropout
            kept = dropout_factors(call.fold(3), rate, features.shape, features.dtype)
            table, features = self.tables["target_embedding"], scale(features, kept)
            step = Step(features, decoded.attention, table, source, word=embedded)
            predictions, attended = self.readout.run(self.tables, step, *known)
            step = step._replace(attention=attended)
            both_ways = self.aligner.run_both_ways(self._of_aligner, step, mask, aligned)
            return decoded, predictions, attended, both_ways

        if call.train and self.config.scheduled_sampling:
            _, written, *_ = write(before)
            rate = self.config.scheduled_sampling
            before = scheduled_inputs(before, written.log_probs(), rate, call.fold(5))
        decoded, predictions, attended, (weights, opposite) = write(before)
        if not target.shape[1]:  # no word is the last one; it counts as padding
            target, mask = jnp.pad(target, ((0, 0), (0, 1))), jnp.pad(mask, ((0, 0), (0, 1)))
        # No step comes after the last word to observe it: `remaining` is given it instead.
        last = self._embed_target(target[:, -1], call.fold(4))
        outputs: dict[str, Any] = {
            name: predictor.predict(self.predicting[name], encoded)
            for name, predictor in self.predictors.items()
        }
        if self.aligner.is_separate:
            outputs["alignment"] = weights
        if opposite is not None:
            outputs["opposite_alignment"] = opposite
        outputs |= self._layers(sources, decoded.outputs)
        coverage = self.decoder.remaining(
            memory, decoded.state, last, mask[:, -1], decoder.told(target[:, -1])
        )
        if coverage is not None:
            outputs["coverage"] = coverage
        outputs |= of_sources(attended, slots)
        return ModelOutput(predictions, attended, outputs)

    def embed(self, batch: Batch) -> dict[str, Array]:
        """Returns the embedded positions of the first source, by their path in a call."""
        first = self.sources[0]
        return {f"{first.encoder_name}/{INPUT}": first.embed(self.tables, batch).vectors}

    def start(self, batch: Batch, max_length: int) -> tuple[Searched, Written]:
        """Encodes the sources; returns what is searched for, and the first state."""
        sources, slots = self._encode(batch)
        first, *_ = slots.values()  # which attention is over
        memory, state = self.decoder.start(sources, max_length)
        source = self.readout.prepare(self.tables, first_source(sources), batch)
        state = Written(state, self.readout.init_state(self.tables, source))
        aligned = self.aligner.prepare(self._of_aligner, first_source(sources))
        return Searched(memory, source, first, aligned), state

    def _encode(self, batch: Batch, call: Call = Call()) -> tuple[Sources, dict[str, Slots]]:
        sources, slots = {}, {}
        for number, source in enumerate(self.sources):
            # The first has the call's own key, whatever there is beside it.
            part = call.fold(1 + number) if number else call
            read = getattr(self, source.encoder_name)
            # Masks of ablated heads are named by the paths of parameters, as are the outputs below.
            part = part.within(source.encoder_name)
            encoded, slots[source.name] = source.encode(self.tables, read, batch, part)
            if not number:  # what a decoder reads beside the first source
                given = {name: batch[name] for name in self.writing.fields}
                encoded = dataclasses.replace(encoded, aux={**encoded.aux, **given})
            sources[source.name] = encoded
        return sources, slots

    def _layers(self, sources: Sources, of_decoder: Mapping[str, Any]) -> dict[str, Any]:
        """Returns what layers have computed, by the paths of their parameters."""
        found = {f"decoder/{path}": output for path, output in of_decoder.items()}
        for source in self.sources:
            encoded = sources[source.name]
            for path, output in encoded.outputs.items():
                found[f"{source.encoder_name}/{path}"] = output
        return found

    def step(
        self, memory: Searched, state: Written, tokens: Array
    ) -> tuple[Predictions, Array, Written]:
        """Feeds one token to every hypothesis."""
        embedded = self._embed_target(tokens)
        features, attended, decoding = self.decoder.step(
            memory.memory, state.decoder, embedded, decoder.told(tokens)
        )
        table = self.tables["target_embedding"]
        step = Step(
            features, attended, table, memory.source, tokens, state.readout, word=embedded
        )
        idle = attended.aux.get(IDLE)  # read before the readout says what it has attended to
        predictions, attended, reading = self.readout.step(self.tables, step)
        if idle is not None:
            predictions = LimitedPredictions(predictions, idle)
        step = step._replace(attention=attended)
        weights = self.aligner.align(self._of_aligner, step, memory.aligned)
        return predictions, weights, Written(decoding, reading)

    @property
    def _of_aligner(self) -> Params:
        return self.aligning.get(ALIGNER, {})

    def _embed_target(self, tokens: Array, call: Call = Call()) -> Array:
        tokens = self.readout.input_ids(tokens)
        embedded = look_up(self.tables["target_embedding"], tokens)
        rate = self.config.embedding_dropout
        return scale(embedded, dropout_factors(call, rate, embedded.shape, embedded.dtype))


def table_parameters(
    config: Any, sources: tuple[Source, ...], readout: Readout, vocabulary_size: int
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
