"""Which tokens a search may generate at a position."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from attention_jax.search.config import SearchConfig
from attention_jax.types import SpecialIds


def never_generated(config: SearchConfig) -> tuple[int, ...]:
    """Lists the ids that no output contains."""
    unknown = (SpecialIds.UNK,) if config.forbid_unknown else ()
    return (SpecialIds.PAD, SpecialIds.BOS, *unknown)


def end_allowed(position: Int[Array, ""], shortest: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Tells where an output may end with the token at `position` (from 0)."""
    return position + 1 >= shortest


def end_required(position: Int[Array, ""], longest: Int[Array, "B"]) -> Bool[Array, "B"]:
    """Tells where an output must end with the token at `position` (from 0)."""
    return position + 1 >= longest


def mask_logits(
    logits: Float[Array, "B K V"],
    config: SearchConfig,
    position: Int[Array, ""],
    shortest: Int[Array, "B"],
    longest: Int[Array, "B"],
) -> Float[Array, "B K V"]:
    """Sets the logits of the tokens that may not stand at `position` to minus infinity."""
    ids = jnp.arange(logits.shape[-1])
    is_end = ids == SpecialIds.EOS
    allowed = ~jnp.isin(ids, jnp.array(never_generated(config)))
    allowed = allowed & (end_allowed(position, shortest)[:, None] | ~is_end)
    allowed = jnp.where(end_required(position, longest)[:, None], is_end, allowed)
    return jnp.where(allowed[:, None, :], logits, -jnp.inf)
