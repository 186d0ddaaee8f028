"""Perceptrons with one hidden layer, by which predictors read numbers off annotations.

  tanh(x W + b) W_o + b_o
"""

import jax.numpy as jnp
from jaxtyping import Float

from attention_jax.layers.parameters import Parameter
from attention_jax.ops.products import add_bias
from attention_jax.ops.summation import upcast
from attention_jax.types import Array, Params


def perceptron_parameters(input_dim: int, hidden_dim: int, output_dim: int) -> dict[str, Parameter]:
    """Perceptron: returns the parameters of both layers."""
    return {
        "hidden": Parameter.of("kernel", annotation=input_dim, hidden=hidden_dim),
        "hidden_bias": Parameter.of("bias", hidden=hidden_dim),
        "output": Parameter.of("kernel", hidden=hidden_dim, prediction=output_dim),
        "output_bias": Parameter.of("bias", prediction=output_dim),
    }


def perceptron(params: Params, vectors: Float[Array, "*B D"]) -> Float[Array, "*B P"]:
    """Perceptron: predicts numbers from each vector, in float32 at least."""
    hidden = jnp.tanh(add_bias(vectors @ params["hidden"], params["hidden_bias"]))
    return upcast(add_bias(hidden @ params["output"], params["output_bias"]))
