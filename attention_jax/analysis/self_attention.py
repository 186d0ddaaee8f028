"""Self-attention weights of a trained Transformer, of each layer and head on both sides."""

from typing import Any, NamedTuple

import jax
import numpy as np

from attention_jax.analysis.head_names import attended_field, natural_order
from attention_jax.data.examples import Split
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.evaluation.head_statistics import Heads, Reach
from attention_jax.layers.attention import weights_of_heads
from attention_jax.runs.load import TrainedRun
from attention_jax.types import Array, Batch, BidirectionalModel, Params, arrays_of

_END = "/self_attention"


class Attended(NamedTuple):
    """Self-attention in one sequence.

    Attributes:
      weights: Of each head, `H N N`, without padding.
      reach: How many positions each position may attend to, `H N`: fewer than N behind a causal
        mask or in a window.
    """

    weights: Heads
    reach: Reach


def self_attention(run: TrainedRun, split: Split) -> dict[str, list[Attended]]:
    """Self-attention: computes the weights of every layer, encoder first, for a split.

    Those of a source's encoder are between that source's own positions; those of the decoder are of
    teacher forcing, with the split's targets.

    Returns:
      By the path of the layer's module, one `Attended` for each pair; empty for a model without
      self-attention.
    """
    model, params, prefix = _forward(run)
    if not _layers(run, split):
        return {}
    # Only the weights are kept: whatever else the model computes, the compiler leaves out.
    attend = jax.jit(lambda params, batch: _weights(model, params, batch))
    found: dict[str, dict[int, Attended]] = {}
    for batch in make_eval_batches(split, run.config.data):
        for layer, kept in jax.device_get(attend(params, batch)).items():
            lengths = batch[arrays_of(attended_field(layer))[1]].sum(-1)
            pairs = found.setdefault(f"{prefix}{layer}", {})
            pairs |= _cut(*kept, lengths, batch["index"])
    # Batches are formed by length; the index of each pair restores the split's order.
    return {
        layer: [found[layer][index] for index in sorted(found[layer])]
        for layer in sorted(found, key=_from_source_to_target)
    }


def _from_source_to_target(layer: str) -> tuple[bool, list[list[tuple[int, str]]]]:
    return "decoder" in layer.split("/"), natural_order(tuple(layer.split("/")))


def has_self_heads(run: TrainedRun, split: Split) -> bool:
    """Says whether any self-attention of a model has several heads."""
    # weights B N H N
    return any(weights.shape[2] > 1 for weights, _ in _layers(run, split).values())


def _forward(run: TrainedRun) -> tuple[Any, Params, str]:
    """Returns the (forward) model, its parameters on one device, and the prefix of their paths."""
    # Through the host, for the run's own may be sharded over devices.
    if isinstance(run.model, BidirectionalModel):
        return run.model.forward, jax.device_put(jax.device_get(run.params["forward"])), "forward/"
    return run.model, jax.device_put(jax.device_get(run.params)), ""


def _layers(run: TrainedRun, split: Split) -> dict[str, Any]:
    """Returns the shapes of weights, `B N H N`, and reach by the paths of layers; runs nothing."""
    model, params, _ = _forward(run)
    batch = next(iter(make_eval_batches(split, run.config.data)))
    return jax.eval_shape(lambda params, batch: _weights(model, params, batch), params, batch)


def _weights(model: Any, params: Params, batch: Batch) -> dict[str, tuple[Array, Array]]:
    outputs = model.apply(params, batch).outputs
    found = {path: output for path, output in outputs.items() if path.endswith(_END)}
    return {path: (weights_of_heads(output), _reach(output)) for path, output in found.items()}


def _reach(output: Any) -> Array:
    """Returns how many positions each query of each head may read, `B N H`."""
    reach = output.aux["reach"]
    return reach if "head_weights" in output.aux else reach[..., None]


def _cut(
    weights: np.ndarray, reach: np.ndarray, lengths: np.ndarray, indices: np.ndarray
) -> dict[int, Attended]:
    """Removes padding, and the rows that fill up a batch, from `B N H N` and `B N H`."""
    return {
        int(index): Attended(
            np.moveaxis(weights[row], 1, 0)[:, : lengths[row], : lengths[row]],  # N H N -> H N N
            reach[row, : lengths[row]].T,  # N H -> H N
        )
        for row, index in enumerate(indices)
        if index >= 0  # rows that only fill up the batch have -1
    }
