"""Target attention distributions: from links between tokens to what each should attend to.

Links are `B T S`, True where a target token and a slot of the source, mostly a token, belong
together, padding excluded.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float


def inherit(
    links: Bool[Array, "B T S"], target_mask: Bool[Array, "B T"]
) -> Bool[Array, "B T S"]:
    """Affiliation: gives target tokens without a link those of the nearest token that has some.

    Of two neighbours at the same distance, the right one. A sentence none of whose words has a link
    keeps its links as they are: nobody knows how it is aligned, and EOS is no word to learn from.

    Source:
      Devlin et al. (2014), on affiliation, as used by Liu et al. (2016).

    Deviations:
      Theirs are words; EOS is a token like any other here.
    """
    has_link = jnp.any(links, axis=-1)
    place = jnp.arange(links.shape[-2])
    ahead = place[None, :] - place[:, None]  # T T
    # An odd cost is that of a left neighbour: it loses against the right one next to it.
    cost = 2 * jnp.abs(ahead) + (ahead < 0)
    # B T T: a token without links is farther away than any other can be.
    cost = jnp.where(has_link[:, None, :], cost, 2 * links.shape[-2] + 2)
    nearest = jnp.argmin(cost, axis=-1)  # a token with links is its own nearest
    inherited = jnp.take_along_axis(links, nearest[..., None], axis=-2)  # B T S
    is_aligned = jnp.any(has_link & _words(target_mask), axis=-1)
    return jnp.where(is_aligned[:, None, None], inherited, links) & target_mask[..., None]


def smooth(
    links: Bool[Array, "B T S"],
    mask: Bool[Array, "B S"],
    is_word: Bool[Array, "B S"],
    width: float,
) -> Float[Array, "B T S"]:
    """Gaussian smoothing: spreads every link over its neighbourhood in the source.

    spread[t, s] = sum over links (t, i) of exp(-(s - i)^2 / (2 width^2))

    EOS is nobody's neighbour: links to it stay there, others do not reach it.

    Args:
      links: What is linked.
      mask: The real slots of the source.
      is_word: Those that stand for more than EOS.
      width: Standard deviation, in slots.

    Source:
      Mi et al. (2016), "Supervised attentions for neural machine translation", where EOS stands for
      what is not aligned.
    """
    place = jnp.arange(links.shape[-1], dtype=float)
    kernel = jnp.exp(-0.5 * ((place[:, None] - place[None, :]) / width) ** 2)
    is_word = is_word[:, None, :]
    spread = (links & is_word).astype(float) @ kernel  # links to words alone spread: B T S @ S S
    return jnp.where(is_word, spread, (links & mask[:, None, :]).astype(float))


def normalize(rows: Float[Array, "B T S"]) -> Float[Array, "B T S"]:
    """Normalises rows to distributions; a row of zeros stays as it is."""
    total = rows.sum(axis=-1, keepdims=True)
    return rows / jnp.where(total > 0, total, 1.0)


def _words(mask: Bool[Array, "B N"]) -> Bool[Array, "B N"]:
    """Tells which tokens are words: all real ones but the last, EOS."""
    # A token is followed by a real one if it is not the last: EOS drops out.
    return mask & jnp.roll(mask, -1, axis=-1).at[..., -1].set(False)
