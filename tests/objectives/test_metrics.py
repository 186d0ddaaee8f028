"""Metrics that add up, against NumPy float64."""

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.objectives.metrics import add_pairs, means, token_metrics
from attention_jax.ops.predictions import SoftmaxPredictions
from attention_jax.types import ModelOutput


def random_example(seed, rows):
    draw = np.random.default_rng(seed)
    lengths = draw.integers(0, 6, rows)
    batch = {
        "target": draw.integers(0, 4, (rows, 5)).astype(np.int32),
        "target_mask": np.arange(5) < lengths[:, None],
    }
    return draw.normal(size=(rows, 5, 4)).astype(np.float32), batch


def measure(logits, batch):
    return token_metrics(ModelOutput(SoftmaxPredictions(jnp.asarray(logits)), None), batch)


def test_token_metrics_match_numpy():
    logits, batch = random_example(0, 8)
    targets, mask = batch["target"], batch["target_mask"]
    exponentials = np.exp(logits.astype(np.float64))
    chosen = np.take_along_axis(exponentials, targets[..., None], -1)[..., 0]
    nll = -np.log(chosen / exponentials.sum(-1))[mask].sum()
    values = means(add_pairs([measure(logits, batch)]))
    np.testing.assert_allclose(values["nll"], nll / mask.sum(), rtol=1e-6)
    np.testing.assert_allclose(values["perplexity"], np.exp(nll / mask.sum()), rtol=1e-6)
    np.testing.assert_allclose(values["nll_per_sentence"], nll / mask.any(1).sum(), rtol=1e-6)
    correct = (logits.argmax(-1) == targets)[mask]
    np.testing.assert_allclose(values["accuracy"], correct.mean(), rtol=1e-6)


def test_token_metrics_of_batches_add_up():
    logits, batch = random_example(1, 9)
    whole = means(add_pairs([measure(logits, batch)]))
    parts = [slice(0, 2), slice(2, 3), slice(3, 9)]
    summed = means(
        add_pairs(
            measure(logits[rows], {name: array[rows] for name, array in batch.items()})
            for rows in parts
        )
    )
    assert summed.keys() == whole.keys()
    for name in whole:
        np.testing.assert_allclose(summed[name], whole[name], rtol=1e-6)


def test_accuracy_counts_targets_that_no_token_beats():
    logits, batch = random_example(2, 20)
    mask = batch["target_mask"]
    best = np.take_along_axis(logits, batch["target"][..., None], -1)[..., 0] == logits.max(-1)
    assert 0 < best[mask].sum() < mask.sum()
    assert means(add_pairs([measure(logits, batch)]))["accuracy"] == pytest.approx(
        best[mask].mean()
    )


def test_add_pairs_adds_in_float64():
    big, small = np.float32(2**24), np.float32(1.0)
    totals = add_pairs([{"x": (big, small)}, {"x": (small, small)}])
    assert totals["x"] == (2.0**24 + 1.0, 2.0)


def test_means_leaves_out_what_was_not_counted():
    assert means({"a": (0.0, 0.0), "b": (3.0, 2.0)}) == {"b": 1.5}


def test_means_keeps_perplexity_finite():
    assert np.isfinite(means({"nll": (1e5, 1.0)})["perplexity"])
