"""Attribution: how much each vector of a sequence counts for what a function makes of it.

A function here maps named vectors, `B S E` each, to numbers `B T`, every row apart from the others.
Attributions are `B T S`, signed, with zero vectors for what is not there:

  vectors[s] alone   the vectors with zeros at all positions but s
"""

import functools
from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attention_jax.ops.summation import upcast
from attention_jax.types import Array

Vectors = Mapping[str, Array]
Function = Callable[[Vectors], Array]


def input_times_gradient(function: Function, vectors: Vectors) -> Float[Array, "B T S"]:
    """Input x gradient: the derivative of each number along each position's own vector.

      A[t, s] = sum_d e[s, d] df_t(e) / de[s, d]

    Args:
      function: f, differentiable.
      vectors: e, `B S E` by name, finite at padding too.

    Source:
      Denil, Demiraj and de Freitas (2014), "Extraction of salient sentences from labelled
      documents".
    """
    _, derivative = jax.linearize(function, vectors)
    return _for_each_position(derivative, vectors)


def integrated_gradients(
    function: Function, vectors: Vectors, num_points: int = 16
) -> Float[Array, "B T S"]:
    """Integrated gradients: input x gradient, averaged on the way from zero vectors to the input.

      A[t, s] = sum_d e[s, d] int_0^1 df_t(a e) / de[s, d] da

    Attributions of a number add up to f_t(e) - f_t(0) (completeness).

    Args:
      function: f, differentiable.
      vectors: e, `B S E` by name, finite at padding too.
      num_points: Where the gradient is taken, by Gauss and Legendre's rule: the integral is exact
        for polynomials of a degree below twice as many.

    Source:
      Sundararajan, Taly and Yan (2017), "Axiomatic attribution for deep networks", eq. 1.

    Deviations:
      They sum over equal steps (section 5), of which it takes many times as many.
    """
    places, weights = np.polynomial.legendre.leggauss(num_points)

    def add(total: Array, point: tuple[Array, Array]) -> tuple[Array, None]:
        place, weight = point
        here = jax.tree.map(lambda vector: place.astype(vector.dtype) * vector, vectors)
        _, derivative = jax.linearize(function, here)
        # Along the input itself, not along the point: the way to it is a straight line.
        return total + weight.astype(total.dtype) * _for_each_position(derivative, vectors), None

    like = jax.eval_shape(functools.partial(input_times_gradient, function), vectors)
    points = jnp.asarray((places + 1) / 2), jnp.asarray(weights / 2)  # from [-1, 1] to [0, 1]
    total, _ = jax.lax.scan(add, jnp.zeros(like.shape, like.dtype), points)
    return total


def occlusion(function: Function, vectors: Vectors) -> Float[Array, "B T S"]:
    """Occlusion: what each number loses when a position's vector is zero.

      A[t, s] = f_t(e) - f_t(e without e[s])

    Args:
      function: f.
      vectors: e, `B S E` by name, finite at padding too.

    Source:
      Zeiler and Fergus (2014), "Visualizing and understanding convolutional networks", section 4.2;
      Li, Monroe and Jurafsky (2016), "Understanding neural networks through representation
      erasure", which divides by f_t(e).
    """
    whole = function(vectors)

    def lost(alone: Vectors) -> Array:
        return whole - function(jax.tree.map(jnp.subtract, vectors, alone))

    return _for_each_position(lost, vectors)


def _for_each_position(change: Function, vectors: Vectors) -> Float[Array, "B T S"]:
    """Returns `change` of each position's vector alone."""
    size = jax.tree.leaves(vectors)[0].shape[1]

    def at(position: Array) -> Array:
        is_there = (jnp.arange(size) == position)[:, None]  # S 1
        return upcast(change(jax.tree.map(lambda each: jnp.where(is_there, each, 0), vectors)))

    # One after the other: all at once would need S times the memory of the model.
    return jnp.moveaxis(jax.lax.map(at, jnp.arange(size)), 0, -1)  # S B T -> B T S


def norms_of_sums(
    weights: Float[Array, "*B T H S"], vectors: Float[Array, "*B S H D"]
) -> Float[Array, "*B T S"]:
    """Norm-based analysis: the length of what each slot adds to a context, all heads together.

      N[t, s] = | sum_h weights[t, h, s] vectors[s, h] |

    Args:
      weights: Of each head, as its values were averaged.
      vectors: Each slot's value in each head, as it enters the context: f_h(x_s).

    Source:
      Kobayashi, Kuribayashi, Yokoi and Inui (2020), "Attention is not only a weight: analyzing
      transformers with vector norms".
    """
    weights, vectors = upcast(weights), upcast(vectors)
    # From the products of heads, H H for each slot: the summed vectors would be T S D numbers.
    products = jnp.einsum("...shd,...skd->...shk", vectors, vectors)
    squares = jnp.einsum("...ths,...shk,...tks->...ts", weights, products, weights)
    return jnp.sqrt(jnp.maximum(squares, 0.0))  # which rounding may leave below zero
