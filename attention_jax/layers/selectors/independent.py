"""Independent selection: a Bernoulli variable for each word, which knows of no other.

  p(z[t] = 1) = sigmoid(w . h[t] + b)

It is taught by REINFORCE; see the objective `rationale`.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax

from attention_jax.configuration import setting
from attention_jax.layers.parameters import affine
from attention_jax.layers.selector import Selector, drawn, most_probable, summed
from attention_jax.ops.products import add_bias
from attention_jax.ops.rationales import Selection
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Call, Params

PAPER = "Lei, Barzilay and Jaakkola (2016), Rationalizing neural predictions, section 4.1"


@dataclasses.dataclass(frozen=True)
class Config:
    """Independent selection.

    Attributes:
      name: The selector.
    """

    name: str = setting("independent")


def build(config: Config, depth: int) -> "Independent":
    """Builds the selector for annotations of the given depth."""
    return Independent(depth)


@dataclasses.dataclass(frozen=True)
class Independent(Selector):
    """Independent selection as pure functions."""

    depth: int

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Of the probability."""
        return affine(annotation=self.depth, prediction=1)

    def select(
        self, params: Params, annotations: Array, mask: Array, call: Call = Call()
    ) -> Selection:
        """Draws every word by itself, or decides."""
        logits = upcast(add_bias(annotations @ params["kernel"], params["bias"]))[..., 0]
        if call.train:
            selected, log_prob = drawn(logits, jax.random.uniform(call.rng, logits.shape))
        else:
            selected, log_prob = most_probable(logits, mask)
        return summed(selected, selected, log_prob, mask)
