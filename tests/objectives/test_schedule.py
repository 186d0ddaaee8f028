"""The factor of a weight at each training step."""

import jax.numpy as jnp
import numpy as np
import pytest

from attention_jax.objectives.schedule import WeightSchedule


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, [1, 1, 1, 1, 1]),
        ({"start_steps": 2}, [0, 0, 1, 1, 1]),
        ({"warmup_steps": 4}, [0.25, 0.5, 0.75, 1, 1]),
        ({"half_life_steps": 2}, [1, 0.5**0.5, 0.5, 0.5**1.5, 0.25]),
        ({"start_steps": 1, "warmup_steps": 2, "half_life_steps": 1}, [0, 0.5, 0.5, 0.25, 0.125]),
    ],
)
def test_factor(fields, expected):
    schedule = WeightSchedule(**fields)
    found = [schedule(jnp.int32(step)) for step in range(5)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert schedule.is_constant == (not fields)
