"""Rows that fill a batch up count nowhere."""

import jax
import numpy as np

from attention_jax.devices import make_mesh, pad_rows, shard_batch
from attention_jax.objectives import add_pairs, build_objective
from attention_jax.updates.step import make_eval_step
from tests.training.linear_model import LinearModel, random_batch


def test_pad_rows_adds_rows_that_count_nowhere():
    batch = random_batch(rows=5)
    padded = pad_rows(batch, 4)
    for name, array in padded.items():
        assert array.shape == (8, *batch[name].shape[1:])
        assert array.dtype == batch[name].dtype
        np.testing.assert_array_equal(array[:5], batch[name])
    assert not padded["source_mask"][5:].any() and not padded["target_mask"][5:].any()
    np.testing.assert_array_equal(padded["index"][5:], -1)
    objective = build_objective({"nll": {}})
    eval_step = make_eval_step(LinearModel(), objective)
    params = LinearModel().init(jax.random.key(0))
    summaries = [objective.summary(add_pairs([eval_step(params, b)])) for b in (batch, padded)]
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5), *summaries)


def test_pad_rows_leaves_whole_batches_alone():
    batch = random_batch(rows=8)
    assert all(pad_rows(batch, 4)[name] is batch[name] for name in batch)


def test_shard_batch_keeps_every_number():
    batch = random_batch(rows=8)
    placed = shard_batch(batch, make_mesh(jax.devices()[:1]))
    for name, array in placed.items():
        np.testing.assert_array_equal(array, batch[name])
