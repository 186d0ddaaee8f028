"""Joint training of two encoder-decoders of opposite directions on the same pairs.

Objectives see the outputs of both. Search and evaluation take the model for its forward one.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax

from attention_jax.configuration import setting
from attention_jax.errors import ConfigError
from attention_jax.layers.mechanism import described
from attention_jax.layers.source import MAIN
from attention_jax.models import encoder_decoder
from attention_jax.types import (
    Array,
    Batch,
    Call,
    Model,
    ModelOutput,
    Params,
    Slots,
    swap_sides,
)


@dataclasses.dataclass(frozen=True)
class Config(encoder_decoder.Config):
    """Two encoder-decoders of one config, whose fields are those of `encoder_decoder`.

    The models share no parameters. The source of the reverse one, which it reads as the forward one
    reads its own, is the target of the task.

    Attributes:
      name: The model.
    """

    name: str = setting("bidirectional")


def build(
    config: Config, source_vocabulary_size: int, target_vocabulary_size: int
) -> "Bidirectional":
    """Builds both models; raises `ConfigError` if parts of the config do not fit."""
    if config.predictors:
        raise ConfigError(
            "config.model.predictors: expected none in a model of both directions, of which "
            f"objectives see the forward one's only, found {', '.join(config.predictors)}"
        )
    if config.aligner.name != "attention":
        raise ConfigError(
            "config.model.aligner.name: expected 'attention' in a model of both directions, of "
            f"which links teach the forward one's only, found {config.aligner.name!r}"
        )
    forward = encoder_decoder.build(config, source_vocabulary_size, target_vocabulary_size)
    if forward.decoder.mechanism.provides:
        raise ConfigError(
            "config.model.attention: expected one that no objective has to teach in a model of "
            "both directions, of which objectives see the forward one's only, found "
            f"{described(config.attention)}"
        )
    if list(config.sources) != [MAIN] or forward.sources[0].input.vocabulary_size is None:
        found = ", ".join(
            f"{name} (input {source.input.name!r})" for name, source in config.sources.items()
        )
        raise ConfigError(
            "config.model.sources: expected one of tokens, called 'source', in a model of both "
            f"directions, found {found}"
        )
    if forward.readout.fields:
        raise ConfigError(
            "config.model.readout.name: expected one that reads no fields of its own in a model of "
            "both directions, as such fields are of one direction's source, found "
            f"{config.readout.name!r}"
        )
    return Bidirectional(
        forward=forward,
        reverse=encoder_decoder.build(config, target_vocabulary_size, source_vocabulary_size),
    )


@dataclasses.dataclass(frozen=True)
class Bidirectional:
    """Bidirectional model: both directions as one; see `types.BidirectionalModel`.

    Attributes:
      forward: From source to target; its parameters are `params["forward"]`.
      reverse: From target to source; its parameters are `params["reverse"]`.

    Source:
      Cohn et al. (2016), on bilingual symmetry.
    """

    forward: Model
    reverse: Model

    @property
    def begins_from(self) -> str:
        """As the forward model does."""
        return self.forward.begins_from

    @property
    def fields(self) -> Sequence[str]:
        """Those of the forward model; the reverse one reads the target as its source."""
        return self.forward.fields

    @property
    def provides(self) -> dict[str, str | None]:
        """What the forward model provides, and its attention only as far as both do."""
        mine = self.forward.provides
        of_both = "alignment", "last_word", "slot_for_each_token"
        # Objectives that compare directions need these of both; searches ask the forward one alone.
        missing = {key for key in of_both if key not in self.reverse.provides}
        return {**{key: mine[key] for key in mine if key not in missing}, "reverse": None}

    def init(self, rng: Array) -> Params:
        """Draws the parameters of both models."""
        forward_rng, reverse_rng = jax.random.split(rng)
        return {
            "forward": self.forward.init(forward_rng),
            "reverse": self.reverse.init(reverse_rng),
        }

    def parameter_axes(self) -> Params:
        """Returns the logical axes of the parameters of both models."""
        models = {"forward": self.forward, "reverse": self.reverse}
        return {name: model.parameter_axes() for name, model in models.items()}

    def apply(self, params: Params, batch: Batch, call: Call = Call()) -> ModelOutput:
        """Teacher forcing: runs both models; the reverse one's output is among the outputs."""
        forward = self.forward.apply(params["forward"], batch, call.fold(0).within("forward"))
        # Two draws of dropout: the models share a batch, not their noise.
        mirrored, call = swap_sides(batch), call.fold(1).within("reverse")
        reverse = self.reverse.apply(params["reverse"], mirrored, call)
        return dataclasses.replace(forward, outputs={**forward.outputs, "reverse": reverse})

    def embed(self, params: Params, batch: Batch) -> dict[str, Array]:
        """Returns the embedded positions that the forward model reads, by their path in a call."""
        found = self.forward.embed(params["forward"], batch)
        return {f"forward/{path}": vectors for path, vectors in found.items()}

    def value_norms(self, params: Params, batch: Batch) -> Array:
        """Norm-based analysis of the forward model's attention, `B T S`."""
        return self.forward.value_norms(params["forward"], batch)

    def start(self, params: Params, batch: Batch, max_length: int) -> tuple[Any, Any]:
        """Encodes sources for the forward model."""
        return self.forward.start(params["forward"], batch, max_length)

    def slots(self, memory: Any) -> Slots | None:
        """Returns what the forward model's slots stand for."""
        return self.forward.slots(memory)

    def step(
        self, params: Params, memory: Any, state: Any, tokens: Array
    ) -> tuple[Any, Array, Any]:
        """Decoding step: feeds one token to every hypothesis of the forward model."""
        return self.forward.step(params["forward"], memory, state, tokens)

    def shortlisted(self, params: Params, ids: Array) -> tuple["Bidirectional", Params]:
        """Returns the model whose forward one writes some tokens of the vocabulary."""
        forward, narrowed = self.forward.shortlisted(params["forward"], ids)
        return dataclasses.replace(self, forward=forward), {**params, "forward": narrowed}
