"""Softmax readout: a linear layer over the vocabulary.

  logits = features W^T + b;   p = softmax(logits)

W has one row for each symbol, and may be the target embedding (weight tying), with a projection
between where the depths differ.
"""

import dataclasses
from collections.abc import Mapping
from typing import ClassVar

import jax.numpy as jnp
from jaxtyping import Float

from attention_jax.configuration import setting
from attention_jax.layers.parameters import Parameter
from attention_jax.layers.readout import Readout, ReadoutSizes, Step
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.ops.summation import accumulation_dtype
from attention_jax.types import Array, AttentionOutput, Params

PAPER = "Bahdanau, Cho and Bengio (2015), appendix A.2.2; Press and Wolf (2017) for tied weights"


@dataclasses.dataclass(frozen=True)
class Config:
    """A softmax over the vocabulary.

    Attributes:
      name: The readout.
    """

    name: str = setting("softmax")
    takes_shortlist: ClassVar[bool] = True


def build(config: Config, sizes: ReadoutSizes) -> "SoftmaxReadout":
    """Builds the readout."""
    return SoftmaxReadout(sizes)


@dataclasses.dataclass(frozen=True)
class SoftmaxReadout(Readout):
    """Softmax readout as pure functions.

    Attributes:
      sizes: What it fits.
    """

    sizes: ReadoutSizes
    takes_shortlist: ClassVar[bool] = True

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Bias and matrix, or a projection onto the depth of a tied matrix."""
        sizes = self.sizes
        tree = {"output_bias": Parameter.of("bias", vocab=sizes.vocabulary_size)}
        if not sizes.is_tied:
            tree["output"] = Parameter.of(
                "embedding", vocab=sizes.vocabulary_size, features=sizes.feature_dim
            )
        elif sizes.feature_dim != sizes.embedding_dim:
            tree["output_projection"] = Parameter.of(
                "kernel", features=sizes.feature_dim, embed=sizes.embedding_dim
            )
        return tree

    def predict(self, params: Params, step: Step) -> SoftmaxPredictions:
        """Returns the softmax of the logits."""
        return SoftmaxPredictions(logits_of(*self._factors(params, step), params["output_bias"]))

    def run(
        self, params: Params, step: Step, targets: Array, mask: Array
    ) -> tuple[SoftmaxPredictions, AttentionOutput | None]:
        """Reads all steps of known targets; see `Readout.run`."""
        features, table = self._factors(params, step)
        # The bias is a column of the matrix, and its input one. Else XLA adds it anew wherever the
        # logits are read, and keeps the product beside them: twice the memory of the largest array.
        features = jnp.concatenate([features, jnp.ones_like(features[..., :1])], axis=-1)
        bias = params["output_bias"].astype(table.dtype)
        table = jnp.concatenate([table, bias[:, None]], axis=1)
        return SoftmaxPredictions(logits_of(features, table)), step.attention

    def _factors(self, params: Params, step: Step) -> tuple[Array, Array]:
        """Returns what is multiplied: the features and the matrix."""
        features = step.features
        if "output_projection" in params:
            features = features @ params["output_projection"]
        # Weight tying: without a matrix of its own, the target embedding is the output matrix.
        return features, params.get("output", step.embedding)

    def shortlisted(
        self, params: Params, embedding: Array, ids: Array
    ) -> tuple["SoftmaxReadout", Params]:
        """Takes the rows of the tokens; of a tied matrix, they become one of their own."""
        rows = params.get("output", embedding)[ids]
        if "output_projection" in params:
            rows = rows @ params["output_projection"].T
        sizes = self.sizes._replace(vocabulary_size=len(ids), is_tied=False)
        return SoftmaxReadout(sizes), {"output": rows, "output_bias": params["output_bias"][ids]}


def logits_of(
    features: Float[Array, "*B F"],
    table: Float[Array, "V F"],
    bias: Float[Array, "V"] | None = None,
) -> Float[Array, "*B V"]:
    """Logits: scores the vocabulary, in float32; `table` has one row for each symbol.

    Rows, not columns, so that the table can also be the embedding.
    """
    # In two dimensions throughout, or XLA writes an array of this size once for every shape.
    rows = features.reshape(-1, features.shape[-1])
    logits = jnp.matmul(rows, table.T, preferred_element_type=accumulation_dtype(rows))
    if bias is not None:
        logits = logits + bias
    return logits.reshape(*features.shape[:-1], table.shape[0])
