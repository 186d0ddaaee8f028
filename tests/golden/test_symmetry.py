"""Bilingual symmetry, worked out by hand."""

import jax.numpy as jnp
import numpy as np

from attention_jax.objectives.bilingual_symmetry import Term
from attention_jax.types import AttentionOutput, ModelOutput


def test_trace_of_three_target_and_two_source_tokens():
    """.8*.6 + .2*.1 + .3*.3 + .7*.2 + .1*.1 + .9*.7 = .5 + .23 + .64 = 1.37."""
    forward, reverse = (
        ModelOutput(None, AttentionOutput(None, jnp.asarray([weights]), None))
        for weights in (
            [[0.8, 0.2], [0.3, 0.7], [0.1, 0.9]],
            [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]],
        )
    )
    output = ModelOutput(None, forward.attention, {"reverse": reverse})
    batch = {"target_mask": jnp.ones((1, 3), bool), "source_mask": jnp.ones((1, 2), bool)}
    np.testing.assert_allclose(Term().total(output, batch), -1.37, rtol=1e-6)
    assert Term().count(batch) == 3
