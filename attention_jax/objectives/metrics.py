"""Training metrics as (sum, count) pairs, which add up exactly over batches."""

from collections.abc import Iterable, Mapping

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from attention_jax.objectives.nll import sentence_count, token_count
from attention_jax.types import Batch, ModelOutput

Pairs = dict[str, tuple[Array, Array]]
Totals = Mapping[str, tuple[float, float]]

# exp of anything larger does not fit a float.
_LARGEST_EXPONENT = 700.0


def token_metrics(output: ModelOutput, batch: Batch) -> Pairs:
    """Token metrics: measures how well the model predicts the target tokens.

    Returns:
      (sum, count) pairs: `nll` (nats a token, without label smoothing), `nll_per_sentence`, and
      `accuracy` (how often no token is more probable than the target). Padding counts nowhere.
    """
    targets, mask = jnp.asarray(batch["target"]), jnp.asarray(batch["target_mask"])
    # For reports only: the loss has a cross-entropy of its own to differentiate.
    predictions = jax.lax.stop_gradient(output.predictions)
    nll = predictions.cross_entropy(targets, mask).sum()
    tokens = token_count(batch)
    return {
        "nll": (nll, tokens),
        "nll_per_sentence": (nll, sentence_count(batch)),
        "accuracy": (jnp.sum(predictions.is_best(targets) & mask, dtype=float), tokens),
    }


def add_pairs(metrics: Iterable[Mapping[str, tuple[ArrayLike, ArrayLike]]]) -> Totals:
    """Adds up the metrics of several batches, in float64 on the host."""
    totals: dict[str, tuple[float, float]] = {}
    # One transfer for all batches: a scalar at a time would wait for the device each time.
    for pairs in jax.device_get(list(metrics)):
        for name, (total, count) in pairs.items():
            old_total, old_count = totals.get(name, (0.0, 0.0))
            totals[name] = (old_total + float(total), old_count + float(count))
    return totals


def means(totals: Totals) -> dict[str, float]:
    """Means: divides sums by counts where anything was counted, and adds the perplexity."""
    values = {name: total / count for name, (total, count) in totals.items() if count}
    if "nll" in values:
        # Of the mean of all tokens: the mean of batches' perplexities would be another number.
        values["perplexity"] = float(np.exp(min(values["nll"], _LARGEST_EXPONENT)))
    return values

