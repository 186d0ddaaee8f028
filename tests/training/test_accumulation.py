"""Gradient accumulation in a whole training: batches of any size, and the same result."""

import dataclasses

import jax
import numpy as np
import pytest

from attention_jax.experiment import run_experiment
from attention_jax.plotting.curves import read_metrics
from attention_jax.runs.load import load_run
from attention_jax.updates.optimizers import SGD
from tests.training.tiny import tiny_config


def _train(workdir, accumulate_steps):
    """Trains for an epoch of 7 batches of 10 rows, of which the last holds 4 examples.

    Returns:
      (parameters, losses of the steps). There is no dropout, which would differ between the parts.
    """
    config = tiny_config(
        num_steps=7, accumulate_steps=accumulate_steps, averaging={"name": "none"},
        log_every_steps=1, evaluate_every_steps=0, evaluation={"splits": ()},
    )  # fmt: skip
    config = dataclasses.replace(
        config,
        data=dataclasses.replace(config.data, batch_size=10),
        model=dataclasses.replace(config.model, output_dropout=0.0),
        optimizer=SGD(learning_rate=0.5),
    )
    run_experiment(config, workdir)
    lines = read_metrics(workdir / "metrics.jsonl")
    losses = [line["loss"] for line in lines if line["split"] == "train"]
    return load_run(workdir).params, losses


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return _train(tmp_path_factory.mktemp("whole") / "run", 1)


@pytest.mark.parametrize("accumulate_steps", [4, 16])  # 12 rows in 4 parts, 16 in as many
def test_accumulation_takes_batches_of_any_size(whole, tmp_path, accumulate_steps):
    params, losses = _train(tmp_path / "run", accumulate_steps)
    np.testing.assert_allclose(losses, whole[1], rtol=1e-6)
    assert len(losses) == 7 and losses[-1] < losses[0]
    jax.tree.map(
        lambda one, other: np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6),
        params, whole[0],
    )  # fmt: skip
