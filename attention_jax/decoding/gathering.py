"""Outputs of a model beside its predictions, gathered for every example of a split."""

import functools
from collections.abc import Sequence

import jax
import numpy as np

from attention_jax.data.examples import Split
from attention_jax.data.pipeline import make_eval_batches
from attention_jax.runs.load import TrainedRun
from attention_jax.types import Batch, Model, Params


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
