"""Self-attention: what the positions of a source, or of a known target, attend to."""

from typing import Any, NamedTuple

import jax
import numpy as np

from attention_jax.analysis.head_names import natural_order
from attention_jax.data.examples import Split
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.evaluation.head_statistics import Heads, Reach
from attention_jax.layers.attention import weights_of_heads
from attention_jax.runs.load import TrainedRun
from attention_jax.types import Array, Batch, BidirectionalModel, Params

_END = "/self_attention"


class Attended(NamedTuple):
    """What the positions of one sequence attend to.

    Attributes:
      weights: Of each head, without padding.
      reach: How many positions each may attend to: those before it, or those in a window.
    """

    weights: Heads
    reach: Reach


def self_attention(run: TrainedRun, split: Split) -> dict[str, list[Attended]]:
    """Returns the self-attention of every layer of a Transformer's sides.

    Args:
      run: A trained model.
      split: Its sources and targets; targets are attended to as they are written by force.

    Returns:
      By the path of the layer's module, for each pair weights `H N N` and reach `H N`; empty where
      positions do not attend to one another.
    """
    model, params, prefix = _forward(run)
    if not _layers(run, split):
        return {}
    attend = jax.jit(lambda params, batch: _weights(model, params, batch))
    found: dict[str, dict[int, Attended]] = {}
    for batch in make_eval_batches(split, run.config.data):
        for layer, kept in jax.device_get(attend(params, batch)).items():
            side = "target" if layer.startswith("decoder/") else "source"
            lengths = batch[f"{side}_mask"].sum(-1)
            pairs = found.setdefault(f"{prefix}{layer}", {})
            pairs |= _cut(*kept, lengths, batch["index"])
    return {
        layer: [found[layer][index] for index in sorted(found[layer])]
        for layer in sorted(found, key=_from_source_to_target)
    }


def _from_source_to_target(layer: str) -> tuple[bool, list[list[tuple[int, str]]]]:
    return "decoder" in layer.split("/"), natural_order(tuple(layer.split("/")))


def has_self_heads(run: TrainedRun, split: Split) -> bool:
    """Tells whether positions attend to one another with several heads on some side."""
    return any(weights.shape[2] > 1 for weights, _ in _layers(run, split).values())


def _forward(run: TrainedRun) -> tuple[Any, Params, str]:
    """Returns the model whose attention is looked at, its parameters, and the path to them."""
    if isinstance(run.model, BidirectionalModel):
        return run.model.forward, jax.device_put(jax.device_get(run.params["forward"])), "forward/"
    return run.model, jax.device_put(jax.device_get(run.params)), ""


def _layers(run: TrainedRun, split: Split) -> dict[str, Any]:
    """Returns shapes of weights `B N H N` and reach, by the paths of the layers."""
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
    """Takes padding and filler rows away from `B N H N` and `B N H`."""
    return {
        int(index): Attended(
            np.moveaxis(weights[row], 1, 0)[:, : lengths[row], : lengths[row]],
            reach[row, : lengths[row]].T,
        )
        for row, index in enumerate(indices)
        if index >= 0
    }
