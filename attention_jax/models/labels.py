"""Labels as outputs of one token: their distribution, and how a search writes one.

A vocabulary of labels begins with the special ids, as every vocabulary does; none of them is a
label, and the end follows each label for certain.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Float, Int

from attention_jax.ops.predictions import Predictions
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Leaf, SpecialIds


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LabelPredictions(Predictions):
    """Softmax over labels: p(v) of the vocabulary, 0 for ids that are no labels.

    Attributes:
      logits: `*B C`, of the labels alone.
      is_over: `*B`, True where the label has been written, so that the end is certain; None where
        it has not been anywhere.
    """

    logits: Leaf
    is_over: Leaf | None = None

    def log_probs(self) -> Float[Array, "*B V"]:
        """Returns log p(v) of all ids, minus infinity for those that are impossible."""
        of_labels = jax.nn.log_softmax(upcast(self.logits), axis=-1)
        before = [(0, 0)] * (of_labels.ndim - 1) + [(SpecialIds.COUNT, 0)]
        log_probs = jnp.pad(of_labels, before, constant_values=-jnp.inf)  # *B C -> *B V
        if self.is_over is None:
            return log_probs
        end = jnp.where(jnp.arange(log_probs.shape[-1]) == SpecialIds.EOS, 0.0, -jnp.inf)
        return jnp.where(self.is_over[..., None], end, log_probs)


def label_then_end(
    memory: Mapping[str, Array], state: Mapping[str, Array], tokens: Int[Array, "B K"]
) -> tuple[LabelPredictions, Array, dict[str, Any]]:
    """Step of a search: predicts the label at first, and then the end.

    Args:
      memory: `logits` of the labels `B 1 C`, and `weights`, what they were told from, `B 1 S`.
      state: `position`, how many tokens have been written, `B K`.
      tokens: The last of them.

    Returns:
      (predictions, weights, state), as of `types.Model.step`; the end has attended to nothing.
    """
    is_over = jnp.broadcast_to(state["position"] > 0, tokens.shape)
    shape = (*tokens.shape, memory["logits"].shape[-1])
    predictions = LabelPredictions(jnp.broadcast_to(memory["logits"], shape), is_over)
    weights = jnp.where(is_over[..., None], 0.0, upcast(memory["weights"]))
    return predictions, weights, {"position": state["position"] + 1}
