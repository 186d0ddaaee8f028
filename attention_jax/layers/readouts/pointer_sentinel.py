"""Pointer sentinel: a word is written by the softmax, or pointed at among the last words.

  q = tanh(W h_t + b);   [a; g] = softmax([q . h_i for t - L < i <= t; q . sentinel])
  p(w) = g softmax(W_o h_t + b_o)[w] + sum_i a_i [w_i = w]

h_i is the state that has just read w_i. Where all are unlikely, the sentinel has the share g, and
hands it over to the vocabulary. A search carries the window.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import jax.numpy as jnp

from attention_jax.configuration import setting
from attention_jax.layers.encoder import Encoded
from attention_jax.layers.parameters import Parameter, affine
from attention_jax.layers.readout import Predicted, Readout, ReadoutSizes, Step
from attention_jax.layers.readouts.softmax import SoftmaxReadout
from attention_jax.ops.masks import shift_right
from attention_jax.ops.mixtures import MixturePredictions, pointer_sentinel
from attention_jax.ops.products import add_bias
from attention_jax.types import Array, AttentionOutput, Batch, Params, SpecialIds

PAPER = "Merity, Xiong, Bradbury and Socher (2017), section 2"


@dataclasses.dataclass(frozen=True)
class Config:
    """The softmax, and a pointer to the words before.

    Attributes:
      name: The readout.
      window: L, how many words back it can point; 100 in the paper.
    """

    name: str = setting("pointer_sentinel")
    window: int = setting(100, at_least=1)


def build(config: Config, sizes: ReadoutSizes) -> "PointerSentinel":
    """Builds the readout."""
    return PointerSentinel(sizes, config.window)


@dataclasses.dataclass(frozen=True)
class PointerSentinel(Readout):
    """Pointer sentinel as pure functions.

    Attributes:
      sizes: What it fits.
      window: L.
    """

    sizes: ReadoutSizes
    window: int
    provides: ClassVar[tuple[str, ...]] = ("pointer",)

    @property
    def softmax(self) -> SoftmaxReadout:
        """The readout of the vocabulary."""
        return SoftmaxReadout(self.sizes)

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Those of the softmax, the layer that makes a query, and the sentinel."""
        depth = self.sizes.feature_dim
        pointer = {
            "query": affine(features=depth, key=depth),
            "sentinel": Parameter.of("attention_vector", key=depth),
        }
        return {**self.softmax.parameters, "pointer": pointer}

    def prepare(self, params: Params, encoded: Encoded, batch: Batch) -> Mapping[str, Array]:
        """Returns nothing of the source but that it has rows."""
        return {"rows": jnp.zeros(encoded.mask.shape[0], encoded.annotations.dtype)}

    def run(
        self, params: Params, step: Step, targets: Array, mask: Array
    ) -> tuple[MixturePredictions, AttentionOutput | None]:
        """Reads known targets: each step points back to those before it, and to itself."""
        # The state at step t has read the word before the target: keys belong to the shifted words.
        words, place = shift_right(targets, SpecialIds.BOS), jnp.arange(targets.shape[1])
        behind = place[:, None] - place  # T T: by how much each state lies before each query
        near = (behind >= 0) & (behind < self.window) & _is_word(words)[:, None]
        scores = self._query(params, step.features) @ step.features.mT
        return self._predictions(params, step, scores, words[:, None], near), step.attention

    def init_state(self, params: Params, source: Any) -> Mapping[str, Array]:
        """Returns a window in which no word has been read."""
        rows, depth = source["rows"], self.sizes.feature_dim
        # The window is full from the beginning, of entries that are no words.
        keys = jnp.zeros((rows.shape[0], self.window, depth), rows.dtype)
        return {"keys": keys, "words": jnp.full(keys.shape[:2], SpecialIds.PAD, jnp.int32)}

    def step(self, params: Params, step: Step) -> Predicted:
        """Moves the window by the word that has been read."""
        state = {
            "keys": _pushed(step.state["keys"], step.features),
            "words": _pushed(step.state["words"], step.written.astype(jnp.int32)),
        }
        # The window has moved first: the word that was just read can be pointed at.
        query = self._query(params, step.features)
        scores = (state["keys"] @ query[..., None])[..., 0]  # B K L F and B K F 1 -> B K L
        words = state["words"]
        predictions = self._predictions(params, step, scores, words, _is_word(words))
        return Predicted(predictions, step.attention, state)

    def predict(self, params: Params, step: Step) -> MixturePredictions:
        """Returns the distribution of each next token, given the window."""
        return self.step(params, step).predictions

    def _query(self, params: Params, features: Array) -> Array:
        layer = params["pointer"]["query"]
        return jnp.tanh(add_bias(features @ layer["kernel"], layer["bias"]))

    def _predictions(
        self, params: Params, step: Step, scores: Array, words: Array, mask: Array
    ) -> MixturePredictions:
        sentinel = self._query(params, step.features) @ params["pointer"]["sentinel"]
        weights, kept = pointer_sentinel(scores, sentinel, mask)
        logits = self.softmax.predict(params, step).logits
        return MixturePredictions(logits, kept, weights, words)


def _pushed(window: Array, new: Array) -> Array:
    """Returns a window `B K L ...` with one more entry `B K ...`, the oldest left out."""
    return jnp.concatenate([window[:, :, 1:], new[:, :, None].astype(window.dtype)], axis=2)


def _is_word(ids: Array) -> Array:
    """Whether ids are of words: a text begins with BOS, which is never written."""
    return (ids != SpecialIds.PAD) & (ids != SpecialIds.BOS)
