"""Scheduled sampling: a model in training meets words of its own, as it does in a search.

Teacher forcing feeds the words that are right. With some of them replaced by what the model would
have written, it learns to go on from its own mistakes too.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from attention_jax.types import Call


def scheduled_inputs(
    before: Int[Array, "B T"],
    log_probs: Float[Array, "B T V"],
    rate: float,
    call: Call,
) -> Int[Array, "B T"]:
    """Scheduled sampling: replaces words before targets by samples of what was predicted there.

    before'[t] = v ~ p(v) of step t - 1  with probability `rate`, else before[t];   t > 0

    Gradients do not flow through what is sampled.

    Args:
      before: The known word before each target, BOS first; that one always stays.
      log_probs: Of the words at each step, log p(v), given the known words before it.
      rate: Share of the words that is replaced.
      call: Has the key to draw from.

    Returns:
      What the decoder is fed in a second pass, whose predictions are trained.

    Raises:
      ValueError: If there is no key.

    Source:
      Bengio, Vinyals, Jaitly and Shazeer (2015), section 2.4; Chan et al. (2016), section 3.3, at
      a rate of 0.1.

    Deviations:
      What is sampled from has read known words alone, not samples of earlier steps, as in the two
      passes of Mihaylova and Martins (2019): both passes are as parallel as teacher forcing is.
    """
    if call.rng is None:
        raise ValueError("rng: expected a key, because scheduled sampling is on, found None")
    of_words, of_places = jax.random.split(call.rng)
    # With the batch as leading axis, so that rows draw the same on any number of devices.
    sampled = jax.random.categorical(of_words, jax.lax.stop_gradient(log_probs), axis=-1)
    is_replaced = jax.random.bernoulli(of_places, rate, before.shape)
    is_replaced &= jnp.arange(before.shape[1]) > 0
    first = before[:, :1]
    # The sample of a step stands before the target of the next: B T, shifted as the targets were.
    sampled = jnp.concatenate([first, sampled[:, :-1].astype(before.dtype)], axis=1)
    return jnp.where(is_replaced, sampled, before)
