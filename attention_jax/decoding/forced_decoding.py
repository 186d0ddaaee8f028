"""Forced decoding: computes attention and other outputs of a trained model for known targets."""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from attention_jax.data.examples import Split
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.ops.spans import to_positions
from attention_jax.runs.load import TrainedRun
from attention_jax.types import Batch, Model, ModelOutput, Params


@dataclasses.dataclass(frozen=True, eq=False)
class ForcedAttention:
    """Attention of forced decoding to one target, EOS last on both sides.

    Row t is the attention of the step that predicts target token t, whatever the decoder's order of
    attending and updating.

    Attributes:
      weights: `T S` between tokens, without padding, even if the encoder merges positions.
      heads: `H T S`, or None where the mechanism has one head.
    """

    weights: Float[np.ndarray, "T S"]
    heads: Float[np.ndarray, "H T S"] | None


def forced_attention(run: TrainedRun, split: Split) -> list[ForcedAttention]:
    """Forced decoding: computes the attention with which a model predicts the targets of a split.

    The run's model must have attention.
    """
    found = of_pairs(run, split, functools.partial(_attend, run.model))
    return [
        # T H S -> H T S
        ForcedAttention(each["weights"], np.moveaxis(each["head_weights"], 1, 0))
        if "head_weights" in each
        else ForcedAttention(each["weights"], None)
        for each in found
    ]


def of_pairs(
    run: TrainedRun, split: Split, function: Callable[[Params, Batch], Mapping[str, Any]]
) -> list[dict[str, np.ndarray]]:
    """Forced decoding: computes arrays between tokens of every pair of a split, on one device.

    Args:
      run: A trained run, whose parameters are taken.
      split: The pairs.
      function: (parameters, batch) -> named arrays `B T ... S`; compiled here.

    Returns:
      For each pair its arrays `T ... S`, without padding.
    """
    # Copied to this process's own devices: shared arrays would wait for processes not taking part.
    params = jax.device_put(jax.device_get(run.params))
    compiled = jax.jit(function)
    found: dict[int, dict[str, np.ndarray]] = {}
    for batch in make_eval_batches(split, run.config.data):
        arrays = jax.device_get(compiled(params, batch))
        lengths = (batch["target_mask"].sum(-1), batch[f"{run.model.begins_from}_mask"].sum(-1))
        for row, index in enumerate(batch["index"]):
            if index >= 0:  # rows that only fill up the batch have -1
                rows, columns = lengths[0][row], lengths[1][row]
                found[int(index)] = {
                    name: array[row][:rows, ..., :columns] for name, array in arrays.items()
                }
    return [found[index] for index in range(len(split))]


def has_heads(run: TrainedRun, split: Split) -> bool:
    """Multi-head attention: says whether a run's has several heads, by tracing alone."""
    if not len(split):
        return False
    batch = next(iter(make_eval_batches(split.select([0]), run.config.data)))
    attend = functools.partial(_attend, run.model)
    return "head_weights" in jax.eval_shape(attend, run.params, batch)


def _attend(model: Model, params: Params, batch: Batch) -> dict[str, Any]:
    # Reduced on the device: the rest of what a model returns is never copied to the host.
    return kept_attention(model.apply(params, batch), batch[model.begins_from].shape[1])


def kept_attention(output: ModelOutput, size: int) -> dict[str, Any]:
    """Attention of teacher forcing between tokens, whatever slots an encoder merged them to.

    Args:
      output: What the model returned.
      size: How many source positions there are, S.

    Returns:
      `weights`, `B T S`, of the aligner where the model has one; and `head_weights`, `B T H S`, of
      the decoder's attention, if there are several heads.
    """
    kept = {"weights": output.alignment}
    heads = output.attention.aux.get("head_weights")
    if heads is not None and heads.shape[-2] > 1:
        kept["head_weights"] = heads
    spans = output.outputs["slots"].spans if "slots" in output.outputs else None
    if spans is None:
        return kept
    # From the slots of an encoder that merges positions back to positions: ... slots -> ... S
    return {name: to_positions(weights, spans, size) for name, weights in kept.items()}


def gather_outputs(
    run: TrainedRun, split: Split, names: Sequence[str]
) -> dict[str, list[np.ndarray]]:
    """Runs a model on a split, and keeps some of its outputs.

    Args:
      run: The trained run.
      split: The examples.
      names: Keys of outputs; those that the model does not provide are left out.

    Returns:
      By name, an array for each example in the order of the split. It has the padding of its batch.
    """
    kept = tuple(name for name in names if name in run.model.provides)
    if not kept:
        return {}
    # Copied to this process's own devices: shared arrays would wait for processes not taking part.
    params = jax.device_put(jax.device_get(run.params))
    compute = jax.jit(functools.partial(_named, run.model, kept))
    found: dict[str, dict[int, np.ndarray]] = {name: {} for name in kept}
    for batch in make_eval_batches(split, run.config.data):
        arrays = jax.device_get(compute(params, batch))
        for row, index in enumerate(batch["index"]):
            if index >= 0:
                for name in kept:
                    found[name][int(index)] = np.asarray(arrays[name][row])
    return {name: [of[index] for index in range(len(split))] for name, of in found.items()}


def _named(
    model: Model, names: Sequence[str], params: Params, batch: Batch
) -> dict[str, jax.Array]:
    outputs = model.apply(params, batch).outputs
    return {name: outputs[name] for name in names}
