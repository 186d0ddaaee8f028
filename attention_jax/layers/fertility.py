"""How much attention each source token is expected to get in all: a normal distribution.

  hidden = tanh(annotation W + b);   mean, log_variance = hidden W_o + b_o
"""

import jax.numpy as jnp
from jaxtyping import Float

from attention_jax.layers.parameters import Parameter
from attention_jax.ops.products import add_bias
from attention_jax.types import Array, Fertility, Params


def fertility_parameters(annotation_dim: int, hidden_dim: int) -> dict[str, Parameter]:
    """Returns the parameters of the prediction from annotations of the given depth."""
    return {
        "hidden": Parameter((annotation_dim, hidden_dim)),
        "hidden_bias": Parameter((hidden_dim,), "bias"),
        "output": Parameter((hidden_dim, 2)),
        "output_bias": Parameter((2,), "bias"),
    }


def predict_fertility(params: Params, annotations: Float[Array, "B S D"]) -> Fertility:
    """Predicts each source token's fertility.

    Args:
      params: As `fertility_parameters` describes them.
      annotations: `B S D`, what the encoder made of the source.

    Returns:
      Mean and logarithm of the variance, so that the variance is the exponential of a linear
      layer.

    Source:
      Cohn et al. (2016), section 3.3, global fertility: N(mu(e_i), sigma^2(e_i)).

    Deviations:
      Mean and variance share the hidden layer.
    """
    hidden = jnp.tanh(add_bias(annotations @ params["hidden"], params["hidden_bias"]))
    predicted = add_bias(hidden @ params["output"], params["output_bias"]).astype(jnp.float32)
    return Fertility(predicted[..., 0], predicted[..., 1])
