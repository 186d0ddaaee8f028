"""Deep output: from a decoder's state, the last word and the context to the readout's features.

  u = s U_s + Ey U_y + c U_c + b, then
       maxout: the larger of each two neighbours (Bahdanau et al. 2015, appendix A.2.2)
       tanh: its hyperbolic tangent (dl4mt and Nematus)
"""

import jax.numpy as jnp
from jaxtyping import Float

from attention_jax.layers.parameters import Parameter, project
from attention_jax.ops.products import add_bias
from attention_jax.types import Array, Params

READOUTS = ("maxout", "tanh")


def deep_parameters(
    readout: str, dim: int, state_dim: int, embedding_dim: int, context_dim: int
) -> dict[str, Parameter]:
    """Deep output: returns its parameters, for features of depth `dim`."""
    width = 2 * dim if readout == "maxout" else dim  # maxout halves it
    return {
        "state": Parameter.of("kernel", hidden=state_dim, features=width),
        "embedding": Parameter.of("kernel", embed=embedding_dim, features=width),
        "context": Parameter.of("kernel", context=context_dim, features=width),
        "bias": Parameter.of("bias", features=width),
    }


def deep_output(
    readout: str,
    params: Params,
    state: Float[Array, "*B D"],
    embedded: Float[Array, "*B E"],
    context: Float[Array, "*B Dv"],
) -> Float[Array, "*B F"]:
    """Deep output: combines decoder state, previous word and context into features."""
    # A product for each part, instead of one with their concatenation.
    hidden = (
        state @ params["state"]
        + embedded @ params["embedding"]
        + project(context, params.get("context"))
    )
    hidden = add_bias(hidden, params["bias"])
    return maxout(hidden) if readout == "maxout" else jnp.tanh(hidden)


def maxout(values: Float[Array, "*B D2"]) -> Float[Array, "*B D"]:
    """Maxout: returns the larger of each two neighbours, t_k = max(u_{2k-1}, u_{2k})."""
    return values.reshape(*values.shape[:-1], values.shape[-1] // 2, 2).max(axis=-1)
