"""Recurrent selection: whether a word is selected depends on which were before it in its sentence.

  p(z[t] = 1 | z[<t]) = sigmoid(w . h[t] + v . s[t-1] + b);   s[t] = GRU(s[t-1]; [h[t]; z[t]])

It is taught by REINFORCE; see the objective `rationale`. Where it decides, the probabilities before
stand for the selections before.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.cells import cell_parameters
from attention_jax.layers.parameters import Parameter, affine
from attention_jax.layers.selector import Selector, drawn, most_probable, summed
from attention_jax.ops.masks import zero_padding
from attention_jax.ops.products import add_bias
from attention_jax.ops.rationales import Selection
from attention_jax.ops.recurrent import CELLS
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Call, Params

PAPER = "Lei, Barzilay and Jaakkola (2016), Rationalizing neural predictions, section 4.1"
_CELL = "gru"


@dataclasses.dataclass(frozen=True)
class Config:
    """Recurrent selection, which begins anew with each sentence.

    Attributes:
      name: The selector.
      hidden_dim: Depth of what is remembered of the words before.
    """

    name: str = setting("recurrent")
    hidden_dim: int = setting(30, at_least=1)


def build(config: Config, depth: int) -> "Recurrent":
    """Builds the selector for annotations of the given depth."""
    return Recurrent(depth, config.hidden_dim)


@dataclasses.dataclass(frozen=True)
class Recurrent(Selector):
    """Recurrent selection as pure functions."""

    depth: int
    hidden_dim: int

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Of the probability, and of what remembers."""
        return {
            **affine(annotation=self.depth, prediction=1),
            "memory": Parameter.of("kernel", hidden=self.hidden_dim, prediction=1),
            "cell": cell_parameters(_CELL, self.depth + 1, self.hidden_dim),
        }

    def select(
        self, params: Params, annotations: Array, mask: Array, call: Call = Call()
    ) -> Selection:
        """Draws word after word, all sentences at once, or decides."""
        cell, weights, length = CELLS[_CELL], params["cell"], mask.shape[2]
        # B N L -> B*N L, then time first
        rows = mask.shape[0] * mask.shape[1]
        words = zero_padding(annotations, mask).reshape(rows, length, self.depth)
        is_word = mask.reshape(rows, length)
        shape = (rows, length)
        uniform = jax.random.uniform(call.rng, shape) if call.train else jnp.zeros(shape)

        def step(carry: Any, inputs: tuple) -> tuple[Any, tuple[Array, Array, Array]]:
            word, is_real, number = inputs
            logits = add_bias(word @ params["kernel"], params["bias"])[..., 0]
            logits = upcast(logits + (carry["hidden"] @ params["memory"])[..., 0])
            chosen, log_prob = drawn(logits, number)
            before = chosen if call.train else jax.nn.sigmoid(logits)
            entering = jnp.concatenate([word, before[:, None].astype(word.dtype)], axis=-1)
            gates = cell.split(add_bias(entering @ weights["input"], weights["bias"]))
            new = cell.step(weights, carry, gates, None)
            kept = {name: jnp.where(is_real[:, None], new[name], carry[name]) for name in carry}
            return kept, (chosen, log_prob, logits)

        by_time = (jnp.swapaxes(part, 0, 1) for part in (words, is_word, uniform))
        start = cell.zeros((rows, self.hidden_dim), words.dtype)
        _, found = jax.lax.scan(step, start, tuple(by_time))
        selected, log_prob, logits = (
            jnp.swapaxes(part, 0, 1).reshape(mask.shape) for part in found
        )
        if not call.train:
            selected, log_prob = most_probable(logits, mask)
        return summed(selected, selected, log_prob, mask)
