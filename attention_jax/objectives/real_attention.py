"""The attention that counts in an objective: between real tokens only."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.types import Batch, ModelOutput, SpecialIds


def real_weights(output: ModelOutput, batch: Batch) -> Float[Array, "B T S"]:
    """Returns the weights, zero at padded rows and columns whatever a model left there.

    They are taken out before anything is computed with them: a NaN that only the result is
    cleared of would still come back through the gradient.
    """
    real = batch["target_mask"][..., :, None] & batch["source_mask"][..., None, :]
    return jnp.where(real, output.attention.weights, 0.0)


def attention_received(output: ModelOutput, batch: Batch) -> Float[Array, "B S"]:
    """Returns how much attention each slot gets from all real target tokens together."""
    return real_weights(output, batch).sum(axis=-2)


def real_slots(batch: Batch) -> Bool[Array, "B S"]:
    """Returns where the real tokens of the sources of real sentences are."""
    return batch["source_mask"] & jnp.any(batch["target_mask"], axis=-1, keepdims=True)


def slots_of_words(batch: Batch) -> Bool[Array, "B S"]:
    """Returns the `real_slots` that are no boundary of the source, such as its EOS."""
    is_boundary = (batch["source"] == SpecialIds.BOS) | (batch["source"] == SpecialIds.EOS)
    return real_slots(batch) & ~is_boundary
