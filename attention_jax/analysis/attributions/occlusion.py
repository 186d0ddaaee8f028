"""Occlusion: how much less probable a target token is when a source token has a zero vector.

  A[t, s] = log p(y_t | y_<t, e) - log p(y_t | y_<t, e without e_s)
"""

from attention_jax.analysis.attribution import AttributionMethod, prediction
from attention_jax.ops.attribution import occlusion
from attention_jax.types import Array, AttributableModel, Batch, Params

PAPER = "Zeiler and Fergus (2014), Visualizing and understanding convolutional networks"


def compute(model: AttributableModel, params: Params, batch: Batch) -> Array:
    """Computes it for a batch, `B T S`."""
    return occlusion(*prediction(model, params, batch))


METHOD = AttributionMethod("occlusion", compute)
