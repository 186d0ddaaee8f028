"""Teacher forcing as what searches and their single steps are compared with."""

import functools

import jax.numpy as jnp
import numpy as np

from attention_jax.types import SpecialIds
from tests.quick import quick_jit


def rescored(apply, params, given, found, rank):
    """Reads the hypotheses of a rank again, as known targets.

    Args:
      apply: The model's, compiled.
      params: Its parameters.
      given: What was searched for.
      found: What the search has found.
      rank: Which hypothesis of each row.

    Returns:
      (log p `B`, the model's output, the mask `B T` of what was written).
    """
    tokens, lengths = found.tokens[:, rank], found.lengths[:, rank]
    mask = jnp.arange(tokens.shape[1]) < lengths[:, None]
    target = jnp.where(mask, tokens, SpecialIds.PAD)
    output = apply(params, {**given, "target": target, "target_mask": mask})
    total = jnp.where(mask, output.predictions.log_prob(target), 0.0).sum(-1)
    return np.asarray(total), output, mask


def compare_steps(model, params, given, whole):
    """Compares steps of a search that writes the targets with predictions `B T` of all of them."""
    target, mask = given["target"], np.asarray(given["target_mask"])
    memory, state = quick_jit(model.start, static_argnums=2)(params, given, target.shape[1])
    step = quick_jit(functools.partial(model.step, params, memory))
    tokens, expected = jnp.full_like(target[:, :1], SpecialIds.BOS), whole.log_probs()
    for t in range(target.shape[1]):
        predictions, _, state = step(state, tokens)
        real = mask[:, t]
        np.testing.assert_allclose(
            predictions.log_probs()[real, 0], expected[real, t], rtol=1e-4, atol=1e-5
        )
        tokens = target[:, t : t + 1]
