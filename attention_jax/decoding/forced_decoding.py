"""Attention while a known target is written (forced decoding)."""

import dataclasses
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from attention_jax.data.examples import Split
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.runs.load import TrainedRun
from attention_jax.types import ModelOutput


@dataclasses.dataclass(frozen=True, eq=False)
class ForcedAttention:
    """The attention with which a target is predicted, EOS last on either side.

    Row t is the attention of the step that predicts target token t, whatever the order of the
    decoder.

    Attributes:
      weights: `T S`, without padding.
      heads: `H T S`, or None where the mechanism has one head.
    """

    weights: Float[np.ndarray, "T S"]
    heads: Float[np.ndarray, "H T S"] | None


def forced_attention(run: TrainedRun, split: Split) -> list[ForcedAttention]:
    """Returns the attention with which the target of each source is predicted.

    Args:
      run: A trained model with attention.
      split: Its sources and targets.
    """
    # A copy of this process's own: of several processes, it may be the only one that is here.
    params = jax.device_put(jax.device_get(run.params))
    found: dict[int, ForcedAttention] = {}
    attend = jax.jit(lambda params, batch: _kept(run.model.apply(params, batch)))
    for batch in make_eval_batches(split, run.config.data):
        arrays = jax.device_get(attend(params, batch))
        lengths = (batch["target_mask"].sum(-1), batch["source_mask"].sum(-1))
        for row, index in enumerate(batch["index"]):
            if index >= 0:
                sizes = (slice(lengths[0][row]), slice(lengths[1][row]))
                found[int(index)] = ForcedAttention(
                    arrays["weights"][row][sizes],
                    np.moveaxis(arrays["head_weights"][row], 1, 0)[(slice(None), *sizes)]
                    if "head_weights" in arrays
                    else None,
                )
    return [found[index] for index in range(len(split))]


def has_heads(run: TrainedRun, split: Split) -> bool:
    """Tells whether the attention of a run has several heads; computes nothing."""
    if not len(split):
        return False
    batch = next(iter(make_eval_batches(split.select([0]), run.config.data)))
    return "head_weights" in _kept(jax.eval_shape(run.model.apply, run.params, batch))


def _kept(output: ModelOutput) -> dict[str, Any]:
    """Returns the weights, `B T S`, and those of the heads, `B T H S`, if there are several."""
    kept = {"weights": output.attention.weights}
    heads = output.attention.aux.get("head_weights")
    return kept if heads is None or heads.shape[-2] == 1 else {**kept, "head_weights": heads}
