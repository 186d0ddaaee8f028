"""Hard attention: one slot is sampled from the weights and read alone.

  s ~ Categorical(weights);   read = one-hot of s

A sample has no derivative. The functions here give what estimates of the gradient are made of: the
logarithm of the sample's probability for REINFORCE, samples with the derivative of the weights
(straight through), and relaxed ones (Gumbel-softmax). Each row may hold weights that sum to less
than one, and a row of zeros stays one.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from attention_jax.ops.normalizers import masked_softmax


def sample_slot(
    weights: Float[Array, "*B S"], uniform: Float[Array, "*#B"]
) -> Float[Array, "*B S"]:
    """Samples a slot by the inverse of the cumulative distribution, as a one-hot row.

    s = the first slot at which weights[0] + ... + weights[s] > uniform, of weights that sum to one

    What is sampled does not depend on how many padded slots follow, and no slot without weight is.

    Args:
      weights: At least zero.
      uniform: From [0, 1), independent and uniform for independent samples.
    """
    weights = jax.lax.stop_gradient(weights)
    # Parallel sums of zeros may differ by their rounding: only where there is weight do they count.
    cumulative = jnp.where(weights > 0, jnp.cumsum(weights, axis=-1), 0.0)
    # Of weights that sum to less than one, a share: some slot is read as long as one has weight.
    total = cumulative.max(axis=-1, keepdims=True, initial=0.0)
    return _first(cumulative > uniform[..., None] * total).astype(weights.dtype)


def most_probable_slot(weights: Float[Array, "*B S"]) -> Float[Array, "*B S"]:
    """Returns a one-hot row: the slot with the largest weight, the first of equal ones."""
    peak = weights.max(axis=-1, keepdims=True, initial=0.0)
    # In a row of zeros the peak is zero, too: it must read nothing.
    return _first((weights > 0) & (weights == peak)).astype(weights.dtype)


def log_prob_of_slot(
    weights: Float[Array, "*B S"], read: Float[Array, "*B S"]
) -> Float[Array, "*B"]:
    """Returns log weights[s] of the slot of a one-hot row; 0 for a row of zeros.

    Its derivative by the weights is the score function of REINFORCE, one-hot / weights.
    """
    probability = (weights * jax.lax.stop_gradient(read)).sum(axis=-1)
    # Both `where`s: the logarithm of zero would be infinite, and its gradient NaN.
    is_read = probability > 0
    return jnp.where(is_read, jnp.log(jnp.where(is_read, probability, 1.0)), 0.0)


def straight_through(
    hard: Float[Array, "*B S"], soft: Float[Array, "*B S"]
) -> Float[Array, "*B S"]:
    """Returns `hard` with the derivative of `soft`, a biased estimate of little variance.

    Source:
      Bengio, Leonard and Courville (2013), on stochastic neurons; of rows in place of single bits.
    """
    # The bracket is zero, and carries the derivative.
    return jax.lax.stop_gradient(hard) + (soft - jax.lax.stop_gradient(soft))


def gumbel_softmax(
    weights: Float[Array, "*B S"],
    noise: Float[Array, "*B S"],
    temperature: float | Float[Array, ""],
) -> Float[Array, "*B S"]:
    """Relaxes a sample to a row of the simplex, through which gradients flow.

    read = softmax((log weights + noise) / temperature)

    Its largest entry is at slot s with probability weights[s], at any temperature; with that going
    to 0, the row goes to a one-hot row.

    Args:
      weights: At least zero; a slot without weight is not read.
      noise: Standard Gumbel, -log(-log u).
      temperature: Above zero.

    Source:
      Jang, Gu and Poole (2017), eq. 2; Maddison, Mnih and Teh (2017), the concrete distribution.
    """
    is_possible = weights > 0
    logits = jnp.log(jnp.where(is_possible, weights, 1.0)) + noise
    return masked_softmax(logits / temperature, is_possible)


def draw_by_position(
    draw: Callable[[Key[Array, ""]], Array],
    key: Key[Array, ""],
    positions: Int[Array, "T"],
    axis: int,
) -> Array:
    """Draws for each query with a key of its position.

    So a query finds the same whether it is answered alone or with others.

    Args:
      draw: From a key to what one position draws for all rows.
      key: Of the whole sequence.
      positions: Of the queries.
      axis: Where the axis of the queries is to stand.
    """
    keys = jax.vmap(jax.random.fold_in, in_axes=(None, 0))(key, positions)  # T keys
    return jnp.moveaxis(jax.vmap(draw)(keys), 0, axis)


def _first(condition: Bool[Array, "*B S"]) -> Bool[Array, "*B S"]:
    """Returns where a condition holds for the first time in its row."""
    return condition & (jnp.cumsum(condition, axis=-1) == 1)
