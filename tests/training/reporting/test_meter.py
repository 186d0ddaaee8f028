"""Metrics of steps are added up exactly, read one step late, and watched."""

import jax.numpy as jnp
import pytest

from attention_jax.errors import UserError
from attention_jax.training.reporting.meter import Meter


def _metrics(loss: float, skipped: float = 0.0) -> dict:
    return {"nll": (jnp.float32(loss), jnp.float32(2.0)),
            "skipped": (jnp.float32(skipped), jnp.float32(1.0))}  # fmt: skip


def test_add_returns_a_window_one_step_late():
    meter = Meter(2, max_consecutive_skipped=3)
    assert [meter.add(step, _metrics(step)) for step in (1, 2)] == [None, None]
    step, totals = meter.add(3, _metrics(3.0))
    assert (step, totals["nll"]) == (2, (3.0, 4.0))
    assert meter.flush() is None and meter.flush() is None
    meter.add(4, _metrics(4.0))
    assert meter.flush() == (4, {"nll": (7.0, 4.0), "skipped": (0.0, 2.0)})


def test_flush_ends_a_window_early_where_training_ends():
    meter = Meter(10, max_consecutive_skipped=3)
    for step in (1, 2, 3):
        assert meter.add(step, _metrics(step)) is None
    assert meter.flush() is None
    assert meter.flush(end=True) == (3, {"nll": (6.0, 6.0), "skipped": (0.0, 3.0)})
    assert meter.flush(end=True) is None
    meter.add(4, _metrics(4.0))
    assert meter.flush(end=True) == (4, {"nll": (4.0, 2.0), "skipped": (0.0, 1.0)})


def test_add_raises_after_too_many_skipped_updates_in_a_row():
    meter = Meter(100, max_consecutive_skipped=3)
    for step, skipped in enumerate([1, 1, 0, 1, 1], start=1):
        meter.add(step, _metrics(0.0, skipped))
    meter.add(6, _metrics(0.0, 1.0))
    with pytest.raises(UserError, match="stopped at step 6: .* not finite 3 times in a row"):
        meter.flush()


def test_meter_counts_those_before_a_restart():
    meter = Meter(100, max_consecutive_skipped=3, skipped_in_a_row=2)
    meter.add(1, _metrics(0.0, 1.0))
    with pytest.raises(UserError):
        meter.flush()
