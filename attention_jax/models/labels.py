"""Labels as outputs of one token: their distribution, models of them, and how a search writes one.

A vocabulary of labels begins with the special ids, as every vocabulary does; none of them is a
label, and the end follows each label for certain.
"""

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import linen as nn
from jaxtyping import Float, Int

from attention_jax.layers.parameters import declare, logical_axes
from attention_jax.layers.pooling import Read
from attention_jax.ops.predictions import Predictions
from attention_jax.ops.summation import upcast
from attention_jax.types import (
    Array,
    AttentionOutput,
    Batch,
    Call,
    Leaf,
    ModelOutput,
    Params,
    SpecialIds,
)


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


class LabelModel(abc.ABC):
    """Model of a document's label, whose only output token it is; see `types.Model`.

    Sources are tables of words, `B N L`, and `source_mask` says which sentences are real, `B N`.
    Attention is to sentences; the outputs `word_weights` `B N L` and `sentence_weights` `B N` are
    the shares that words have in their sentence, and sentences in the document.

    Attributes:
      config: The model's config, with `dtype` and `initialization`.
    """

    config: Any
    begins_from: ClassVar[str] = "source"
    fields: ClassVar[Sequence[str]] = ("source", "source_mask")
    provides: ClassVar[Mapping[str, str | None]] = {
        "word_weights": None, "sentence_weights": None
    }  # fmt: skip

    @property
    @abc.abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The tree of parameters."""

    @abc.abstractmethod
    def read(self, params: Params, batch: Batch, call: Call) -> tuple[Array, Read, dict[str, Any]]:
        """Reads documents; returns the logits of labels `B C`, what was read, further outputs."""

    @property
    def module(self) -> "LabelModule":
        """The Linen module that declares the parameters."""
        return LabelModule(self)

    def init(self, rng: Array) -> Params:
        """Draws parameters."""
        return self.module.init(rng, method="initialize")["params"]

    def parameter_axes(self) -> Params:
        """Returns the logical axes of every parameter."""
        return logical_axes(self.parameters)

    def apply(self, params: Params, batch: Batch, call: Call = Call()) -> ModelOutput:
        """Predicts the label of each document, at every target position there is."""
        logits, read, outputs = self._call(params, batch, call)
        steps = batch["target"].shape[1]
        # B ... -> B T ...: the label is the only target, wherever it stands.
        logits, context, weights = (
            jnp.repeat(leaf[:, None], steps, axis=1)
            for leaf in (logits, read.summary, read.sentences)
        )
        attention = AttentionOutput(context, weights, weights)
        outputs = {"word_weights": read.words, "sentence_weights": read.sentences, **outputs}
        return ModelOutput(LabelPredictions(logits), attention, outputs)

    def start(self, params: Params, batch: Batch, max_length: int) -> tuple[Any, Any]:
        """Reads documents; a search asks for their labels first."""
        logits, read, _ = self._call(params, batch, Call())
        memory = {"logits": logits, "weights": read.sentences}
        state = {"position": jnp.zeros(logits.shape[:1], jnp.int32)}
        return jax.tree.map(lambda leaf: leaf[:, None], (memory, state))

    def slots(self, memory: Any) -> None:
        """Returns nothing: slot s is sentence s of the source."""
        return None

    def step(
        self, params: Params, memory: Any, state: Any, tokens: Array
    ) -> tuple[LabelPredictions, Array, Any]:
        """Gives the label of every hypothesis, and the end after it."""
        return label_then_end(memory, state, tokens)

    def _call(
        self, params: Params, batch: Batch, call: Call
    ) -> tuple[Array, Read, dict[str, Any]]:
        if self.config.dtype != "float32":
            # Mixed precision: activations are of this type, gradients reach the float32 parameters.
            params = jax.tree.map(lambda leaf: leaf.astype(self.config.dtype), params)
        return self.module.apply({"params": params}, batch, call)


class LabelModule(nn.Module):
    """Model of labels as a Linen module, which owns the parameters.

    Attributes:
      model: Its pure functions.
    """

    model: LabelModel

    def setup(self) -> None:
        """Declares the parameters."""
        self.weights = declare(self, self.model.parameters, self.model.config.initialization)

    def initialize(self) -> None:
        """Draws the parameters, which `setup` declares, and computes nothing of them."""

    def __call__(self, batch: Batch, call: Call) -> tuple[Array, Read, dict[str, Any]]:
        """Reads documents; see `LabelModel.read`."""
        return self.model.read(self.weights, batch, call)
