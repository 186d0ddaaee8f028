"""Frames: vectors that a source already consists of, such as the spectrum of each 10 ms of speech.

  e_j = x_j W + b
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

from attention_jax.configuration import setting
from attention_jax.errors import ConfigError
from attention_jax.layers.input import Embedded, Input, InputSizes
from attention_jax.layers.parameters import affine
from attention_jax.ops.dropout import dropout_factors, scale
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.products import add_bias
from attention_jax.types import Batch, Call, Params

PAPER = "Chan, Jaitly, Le and Vinyals (2016), Listen, attend and spell, section 4: 40 filter banks"


@dataclasses.dataclass(frozen=True)
class Config:
    """Frames: a linear map of vectors.

    Attributes:
      name: The input.
      frame_dim: Depth of a frame, as the batch holds it.
      embedding_dim: Depth that frames are projected to.
    """

    name: str = setting("frames")
    frame_dim: int = setting(40, at_least=1)
    embedding_dim: int = setting(128, at_least=1)


def build(config: Config, sizes: InputSizes) -> "FrameInput":
    """Builds the input."""
    return FrameInput(sizes, config.frame_dim, config.embedding_dim)


@dataclasses.dataclass(frozen=True)
class FrameInput(Input):
    """Frames as pure functions.

    Attributes:
      sizes: What it fits.
      frame_dim: Depth of a frame.
      depth: Depth of a projected frame.
    """

    sizes: InputSizes
    frame_dim: int
    depth: int

    @property
    def fields(self) -> tuple[str, ...]:
        """Frames `B N F`, and where they are real."""
        return self.sizes.name, f"{self.sizes.name}_mask"

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The projection."""
        return {"projection": affine(input=self.frame_dim, embed=self.depth)}

    def embed(self, params: Params, batch: Batch, call: Call = Call()) -> Embedded:
        """Projects the frames; each stands for something that was said.

        Raises:
          ConfigError: If frames are of another depth.
        """
        frames, mask = (batch[field] for field in self.fields)
        if frames.ndim != 3 or frames.shape[-1] != self.frame_dim:
            raise ConfigError(
                f"config.model.sources.{self.sizes.name}.input.frame_dim: expected the depth of "
                f"the frames, found {self.frame_dim} beside an array of shape {frames.shape}"
            )
        weights = params["projection"]
        # In the model's type: data are float32 whatever that is.
        frames = zero_padding(frames.astype(weights["kernel"].dtype), mask)
        vectors = add_bias(frames @ weights["kernel"], weights["bias"])
        kept = dropout_factors(call, self.sizes.dropout, vectors.shape, vectors.dtype)
        return Embedded(scale(vectors, kept), mask, mask, {})
