"""Integrated gradients: input x gradient, averaged on the way from a source of zero vectors.

  A[t, s] = <e_s, int_0^1 d log p(y_t | y_<t, a e) / d e_s da>

All that source tokens count for a target token adds up to log p(y_t | e) - log p(y_t | 0).
"""

from attention_jax.analysis.attribution import AttributionMethod, prediction
from attention_jax.ops.attribution import integrated_gradients
from attention_jax.types import Array, AttributableModel, Batch, Params

PAPER = "Sundararajan, Taly and Yan (2017), Axiomatic attribution for deep networks, eq. 1"


def compute(model: AttributableModel, params: Params, batch: Batch) -> Array:
    """Computes it for a batch, `B T S`."""
    return integrated_gradients(*prediction(model, params, batch))


METHOD = AttributionMethod("integrated gradients", compute)
