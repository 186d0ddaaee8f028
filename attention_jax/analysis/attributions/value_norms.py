"""Norm-based analysis: attention times the length of the values that it averages.

  A[t, s] = | sum_h weights[t, h, s] f_h(x_s) |

f_h(x_s) is what slot s would give to a context by head h alone, with all of its weight.
Of a Transformer, the heads are those of the layer whose attention stands for the decoder's.
"""

from attention_jax.analysis.attribution import AttributionMethod
from attention_jax.types import Array, AttributableModel, Batch, Params

PAPER = "Kobayashi, Kuribayashi, Yokoi and Inui (2020), Attention is not only a weight"


def compute(model: AttributableModel, params: Params, batch: Batch) -> Array:
    """Computes it for a batch, `B T S`."""
    return model.value_norms(params, batch)


METHOD = AttributionMethod("value norms", compute, is_of_attention=True)
