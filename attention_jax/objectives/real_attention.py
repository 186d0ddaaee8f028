"""The attention that counts in an objective: between real slots and real target tokens only.

A memory may have fewer slots than the source has tokens, as behind a pyramid of layers. What is
summed over the source is therefore summed over the memory's own slots.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from attention_jax.ops.spans import any_in_spans
from attention_jax.types import Batch, ModelOutput, SpecialIds


def slots_mask(output: ModelOutput, batch: Batch) -> Bool[Array, "B S"]:
    """Returns the real slots: the tokens of `source`, if the model says nothing of slots."""
    slots = output.outputs.get("slots")
    return batch["source_mask"] if slots is None else slots.mask


def slots_with_words(output: ModelOutput, batch: Batch) -> Bool[Array, "B S"]:
    """Returns the real slots that stand for more than a boundary of the source."""
    slots = output.outputs.get("slots")
    return source_words(batch) if slots is None else slots.is_word


def slots_linked(
    links: Bool[Array, "B T N"], output: ModelOutput
) -> Bool[Array, "B T S"]:
    """Merges links: a slot has those of all tokens that it stands for."""
    slots = output.outputs.get("slots")
    if slots is None or slots.spans is None:
        return links
    return any_in_spans(links, slots.spans[:, None])  # B T N and B 1 S 2 -> B T S


def source_words(batch: Batch) -> Bool[Array, "B N"]:
    """Source words: returns the real positions that are no boundary, such as EOS."""
    source, mask = batch["source"], batch["source_mask"]
    if not jnp.issubdtype(source.dtype, jnp.integer):
        return mask  # sound and images have no boundaries
    return mask & (source != SpecialIds.BOS) & (source != SpecialIds.EOS)


def real_weights(output: ModelOutput, batch: Batch) -> Float[Array, "B T S"]:
    """Returns the weights, zero at padded rows and columns whatever a model left there.

    They are taken out before anything is computed with them: a NaN that only the result is
    cleared of would still come back through the gradient.
    """
    return _real(output.attention.weights, output, batch)


def real_alignment(output: ModelOutput, batch: Batch) -> Float[Array, "B T S"]:
    """Returns the weights that links teach, likewise: attention's, or those of an aligner."""
    return _real(output.alignment, output, batch)


def real_opposite(output: ModelOutput, batch: Batch) -> Float[Array, "B S T"] | None:
    """Returns the weights of a two-way aligner for the opposite direction, likewise; or None."""
    weights = output.outputs.get("opposite_alignment")
    if weights is None:
        return None
    return jnp.swapaxes(_real(jnp.swapaxes(weights, -1, -2), output, batch), -1, -2)


def _real(weights: Array, output: ModelOutput, batch: Batch) -> Float[Array, "B T S"]:
    real = batch["target_mask"][..., :, None] & slots_mask(output, batch)[..., None, :]
    return jnp.where(real, weights, 0.0)


def attention_received(output: ModelOutput, batch: Batch) -> Float[Array, "B S"]:
    """Attention received: how much each slot gets from all real target tokens together."""
    return real_weights(output, batch).sum(axis=-2)


def real_slots(output: ModelOutput, batch: Batch) -> Bool[Array, "B S"]:
    """Returns the real slots of real sentences; rows that only fill a batch have none."""
    return slots_mask(output, batch) & _is_sentence(batch)


def slots_of_words(output: ModelOutput, batch: Batch) -> Bool[Array, "B S"]:
    """Returns the `real_slots` that stand for more than a boundary of the source."""
    return slots_with_words(output, batch) & _is_sentence(batch)


def _is_sentence(batch: Batch) -> Bool[Array, "B 1"]:
    # Each target ends in EOS: one without any token fills the batch.
    return jnp.any(batch["target_mask"], axis=-1, keepdims=True)
