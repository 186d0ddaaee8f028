"""HardKuma selection: words are read by numbers that are often 0 or 1, and have a derivative.

  a, b = softplus(h[t] W + c);   z[t] ~ HardKuma(a, b)

No REINFORCE is needed, and penalties are of expected numbers; see `ops/rationales.py`, and for
their Lagrangian relaxation `target_share` of the objective `rationale`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.parameters import affine
from attention_jax.layers.selector import Selector, summed
from attention_jax.ops.products import add_bias
from attention_jax.ops.rationales import (
    Selection,
    hard_kuma_decision,
    hard_kuma_probabilities,
    hard_kuma_sample,
)
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Call, Params

PAPER = (
    "Bastings, Aziz and Titov (2019), Interpretable neural predictions with differentiable binary "
    "variables, sections 3 and 4"
)
_LEAST, _MOST = 0.01, 100.0


@dataclasses.dataclass(frozen=True)
class Config:
    """HardKuma selection, each word by itself.

    Attributes:
      name: The selector.
    """

    name: str = setting("hard_kuma")


def build(config: Config, depth: int) -> "HardKuma":
    """Builds the selector for annotations of the given depth."""
    return HardKuma(depth)


@dataclasses.dataclass(frozen=True)
class HardKuma(Selector):
    """HardKuma selection as pure functions."""

    depth: int

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Of a and b."""
        return affine(annotation=self.depth, prediction=2)

    def select(
        self, params: Params, annotations: Array, mask: Array, call: Call = Call()
    ) -> Selection:
        """Draws every word by itself, or decides."""
        shapes = jax.nn.softplus(upcast(add_bias(annotations @ params["kernel"], params["bias"])))
        a, b = jnp.moveaxis(jnp.clip(shapes, _LEAST, _MOST), -1, 0)
        if call.train:
            selected = hard_kuma_sample(a, b, jax.random.uniform(call.rng, a.shape, a.dtype))
        else:
            selected = hard_kuma_decision(a, b)
        share = 1.0 - hard_kuma_probabilities(a, b)[0]
        return summed(selected, share, jnp.zeros_like(selected), mask)
