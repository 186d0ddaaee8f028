"""Forced decoding: computes attention and other outputs of a trained model for known targets."""

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from attention_jax.data.examples import Split
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.layers.attention import weights_of_heads
from attention_jax.ops.spans import to_positions
from attention_jax.runs.load import TrainedRun
from attention_jax.types import (
    Array,
    AttentionOutput,
    Batch,
    Model,
    ModelOutput,
    Params,
    Slots,
    arrays_of,
)

_FURTHER = "further/"  # before the names of further sources, among arrays of the first


@dataclasses.dataclass(frozen=True, eq=False)
class ForcedAttention:
    """Attention of forced decoding to one target, EOS last on both sides.

    Row t is the attention of the step that predicts target token t, whatever the decoder's order of
    attending and updating.

    Attributes:
      weights: `T S` between tokens, without padding, even if the encoder merges positions; of the
        aligner where the model has one.
      heads: `H T S`, those of the decoder's own attention; None where its only head is `weights`.
      further: The same over the positions of each further source, by its name.
      opposite: `S T`, the weights of target tokens for each source token; None but of a two-way
        aligner. Column t is that of the step that predicts token t, as row t of the others.
    """

    weights: Float[np.ndarray, "T S"]
    heads: Float[np.ndarray, "H T S"] | None
    further: Mapping[str, Float[np.ndarray, "H T _"]] = dataclasses.field(default_factory=dict)
    opposite: Float[np.ndarray, "S T"] | None = None


def forced_attention(run: TrainedRun, split: Split) -> list[ForcedAttention]:
    """Forced decoding: computes the attention with which a model predicts the targets of a split.

    The run's model must have attention.
    """
    over = {f"{_FURTHER}{name}": name for name in run.further_sources}
    return [
        ForcedAttention(
            each["weights"],
            _heads_first(each["head_weights"]) if "head_weights" in each else None,
            {over[key]: _heads_first(array) for key, array in each.items() if key in over},
            each["opposite_weights"].T if "opposite_weights" in each else None,
        )
        for each in of_pairs(run, split, functools.partial(_attend, run.model), over)
    ]


def _heads_first(array: Float[np.ndarray, "T H _"]) -> Float[np.ndarray, "H T _"]:
    return np.moveaxis(array, 1, 0)


def of_pairs(
    run: TrainedRun,
    split: Split,
    function: Callable[[Params, Batch], Mapping[str, Any]],
    over: Mapping[str, str] = {},  # noqa: B006  (never changed)
) -> list[dict[str, np.ndarray]]:
    """Forced decoding: computes arrays between tokens of every pair of a split, on one device.

    Args:
      run: A trained run, whose parameters are taken.
      split: The pairs.
      function: (parameters, batch) -> named arrays `B T ... S`; compiled here.
      over: Of arrays over other positions than those of the first source, the field that these are
        positions of.

    Returns:
      For each pair its arrays `T ... S`, without padding.
    """
    # Copied to this process's own devices: shared arrays would wait for processes not taking part.
    params = jax.device_put(jax.device_get(run.params))
    compiled = jax.jit(function)
    found: dict[int, dict[str, np.ndarray]] = {}
    for batch in make_eval_batches(split, run.config.data):
        arrays = jax.device_get(compiled(params, batch))
        written = batch["target_mask"].sum(-1)
        lengths = {
            name: batch[arrays_of(over.get(name, run.model.begins_from))[1]].sum(-1)
            for name in arrays
        }
        for row, index in enumerate(batch["index"]):
            if index >= 0:  # rows that only fill up the batch have -1
                found[int(index)] = {
                    name: array[row][: written[row], ..., : lengths[name][row]]
                    for name, array in arrays.items()
                }
    return [found[index] for index in range(len(split))]


def has_heads(run: TrainedRun, split: Split) -> bool:
    """Says whether a run's attention has heads beside its `weights`, by tracing alone.

    It has where there are several, or where an aligner says the weights.
    """
    if not len(split):
        return False
    batch = next(iter(make_eval_batches(split.select([0]), run.config.data)))
    attend = functools.partial(_attend, run.model)
    return "head_weights" in jax.eval_shape(attend, run.params, batch)


def _attend(model: Model, params: Params, batch: Batch) -> dict[str, Any]:
    # Reduced on the device: the rest of what a model returns is never copied to the host.
    output = model.apply(params, batch)
    kept = kept_attention(output, batch[model.begins_from].shape[1])
    further = further_attention(output, batch)
    return kept | {f"{_FURTHER}{name}": weights for name, weights in further.items()}


def kept_attention(output: ModelOutput, size: int) -> dict[str, Any]:
    """Attention of teacher forcing between tokens, whatever slots an encoder merged them to.

    Args:
      output: What the model returned.
      size: How many source positions there are, S.

    Returns:
      `weights`, `B T S`, of the aligner where the model has one; and `head_weights`, `B T H S`, of
      the decoder's attention, if there are several heads, or an aligner beside it. Of a two-way
      aligner also `opposite_weights`, `B T S`, of which each column is a distribution.
    """
    kept = {"weights": output.alignment}
    heads = weights_of_heads(output.attention)
    if heads.shape[-2] > 1 or "alignment" in output.outputs:
        kept["head_weights"] = heads
    slots = output.outputs.get("slots")
    kept = {name: _of_positions(weights, slots, size) for name, weights in kept.items()}
    if (opposite := output.outputs.get("opposite_alignment")) is not None:
        kept["opposite_weights"] = jnp.swapaxes(opposite, -1, -2)  # of slots that are positions
    return kept


def further_attention(output: ModelOutput, batch: Batch) -> dict[str, Array]:
    """Attention of teacher forcing to further sources, over their own positions.

    Args:
      output: What the model returned.
      batch: What it read.

    Returns:
      By the name of each source that has weights of its own those of all heads, `B T H _`; of
      several layers side by side.
    """
    found = {}
    for key in output.outputs:
        kind, _, name = key.partition("/")
        if kind == "attention" and name in batch:
            heads = jnp.concatenate([_heads_of(each, name) for each in _layers(output)], axis=-2)
            slots = output.outputs.get(f"slots/{name}")
            found[name] = _of_positions(heads, slots, batch[name].shape[1])
    return found


def _layers(output: ModelOutput) -> list[AttentionOutput]:
    """Returns the attention of each layer of a decoder, from the first to the last."""
    # By length first: the second layer comes before the tenth.
    keys = (key for key in output.outputs if re.fullmatch("decoder/.*/attention", key))
    layers = sorted((len(key), key) for key in keys)
    return [output.outputs[key] for _, key in layers] or [output.attention]


def _heads_of(attention: AttentionOutput, name: str) -> Array:
    heads = attention.aux.get(f"{name}/head_weights")
    return attention.aux[f"{name}/weights"][..., None, :] if heads is None else heads


def _of_positions(weights: Array, slots: Slots | None, size: int) -> Array:
    """Brings attention from the slots of an encoder that merges positions back to positions."""
    if slots is None or slots.spans is None:
        return weights
    return to_positions(weights, slots.spans, size)  # ... slots -> ... S


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
