"""Input x gradient: how a prediction changes with the length of each source vector.

  A[t, s] = <e_s, d log p(y_t | y_<t, e) / d e_s>
"""

from attention_jax.analysis.attribution import AttributionMethod, prediction
from attention_jax.ops.attribution import input_times_gradient
from attention_jax.types import Array, AttributableModel, Batch, Params

PAPER = "Denil, Demiraj and de Freitas (2014), Extraction of salient sentences"


def compute(model: AttributableModel, params: Params, batch: Batch) -> Array:
    """Computes it for a batch, `B T S`."""
    return input_times_gradient(*prediction(model, params, batch))


METHOD = AttributionMethod("input x gradient", compute)
