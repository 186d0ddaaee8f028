"""Two encoder-decoders of opposite directions, trained on the same pairs.

Objectives see the outputs of both. Search and evaluation take the model for its forward one.
"""

import dataclasses
from typing import Any

import jax

from attention_jax.configuration import setting
from attention_jax.errors import ConfigError
from attention_jax.layers.dropout import fold
from attention_jax.models import encoder_decoder
from attention_jax.types import Array, Batch, Model, ModelOutput, Params, swap_sides


@dataclasses.dataclass(frozen=True)
class Config(encoder_decoder.Config):
    """Two encoder-decoders of one config, whose fields are those of `encoder_decoder`.

    The models share no parameters. The source of the reverse one, whose embeddings are of depth
    `source_embedding_dim` in it, is the target of the task.

    Attributes:
      name: The model.
    """

    name: str = setting("bidirectional")


def build(
    config: Config, source_vocabulary_size: int, target_vocabulary_size: int
) -> "Bidirectional":
    """Builds both models; raises `ConfigError` if parts of the config do not fit."""
    if config.fertility_dim:
        raise ConfigError(
            "config.model.fertility_dim: expected 0 for a model of both directions, of which "
            "objectives see the forward one's only, "
            f"found {config.fertility_dim}"
        )
    return Bidirectional(
        forward=encoder_decoder.build(config, source_vocabulary_size, target_vocabulary_size),
        reverse=encoder_decoder.build(config, target_vocabulary_size, source_vocabulary_size),
    )


@dataclasses.dataclass(frozen=True)
class Bidirectional:
    """Both models as one; see `types.Model` and `types.BidirectionalModel`.

    Attributes:
      forward: From source to target; its parameters are `params["forward"]`.
      reverse: From target to source; its parameters are `params["reverse"]`.

    Source:
      Cohn et al. (2016), on bilingual symmetry.
    """

    forward: Model
    reverse: Model

    @property
    def optional_outputs(self) -> dict[str, str | None]:
        """The optional outputs of the forward model, which objectives see."""
        return getattr(self.forward, "optional_outputs", {})

    @property
    def is_aligning(self) -> bool:
        """Whether attention weights say which source tokens were attended to."""
        return self.forward.is_aligning and self.reverse.is_aligning

    @property
    def knows_last_word(self) -> bool:
        """Whether attention for a word depends on the word before it."""
        return self.forward.knows_last_word and self.reverse.knows_last_word

    def init(self, rng: Array) -> Params:
        """Draws the parameters of both models."""
        forward_rng, reverse_rng = jax.random.split(rng)
        return {
            "forward": self.forward.init(forward_rng),
            "reverse": self.reverse.init(reverse_rng),
        }

    def apply(
        self, params: Params, batch: Batch, *, rng: Array | None = None, train: bool = False
    ) -> ModelOutput:
        """Runs both models on known targets; the output of the reverse one is `reverse`."""
        forward = self.forward.apply(params["forward"], batch, rng=fold(rng, 0), train=train)
        reverse = self.reverse.apply(
            params["reverse"], swap_sides(batch), rng=fold(rng, 1), train=train
        )
        return dataclasses.replace(forward, reverse=reverse)

    def start(self, params: Params, batch: Batch, max_length: int) -> tuple[Any, Any]:
        """Encodes sources for the forward model."""
        return self.forward.start(params["forward"], batch, max_length)

    def step(
        self, params: Params, memory: Any, state: Any, tokens: Array
    ) -> tuple[Array, Array, Any]:
        """Feeds one token to every hypothesis of the forward model."""
        return self.forward.step(params["forward"], memory, state, tokens)
