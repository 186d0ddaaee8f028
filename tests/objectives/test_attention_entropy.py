"""The bonus for entropy against NumPy float64: what is real counts, and nothing else."""

import jax
import jax.numpy as jnp
import numpy as np

from attention_jax.objectives import attention_entropy
from attention_jax.types import AttentionOutput, ModelOutput

WEIGHTS = np.asarray(
    [
        [[0.2, 0.8, 0.0], [0.5, 0.25, 0.25]],
        [[1.0, 0.0, np.nan], [np.nan, np.nan, np.nan]],  # one slot and a step that reads nothing
    ]
)
BATCH = {
    "source_mask": jnp.asarray([[1, 1, 1], [1, 1, 0]], bool),
    "target_mask": jnp.asarray([[1, 1], [1, 0]], bool),
}


def total(weights):
    output = ModelOutput(None, AttentionOutput(None, weights, None))
    return attention_entropy.Term().total(output, BATCH)


def test_entropies_are_subtracted_and_padding_has_none():
    expected = sum(w * np.log(w) for w in (0.2, 0.8, 0.5, 0.25, 0.25))
    value, gradient = jax.value_and_grad(total)(jnp.asarray(WEIGHTS, jnp.float32))
    np.testing.assert_allclose(value, expected, rtol=1e-6)
    real = np.asarray(BATCH["target_mask"])[..., None] & np.asarray(BATCH["source_mask"])[:, None]
    derivative = np.where(real & (WEIGHTS > 0), np.log(np.where(WEIGHTS > 0, WEIGHTS, 1)) + 1, 0)
    derivative[~real] = 0
    np.testing.assert_allclose(gradient[real & (WEIGHTS > 0)], derivative[real & (WEIGHTS > 0)],
                               rtol=1e-5)  # fmt: skip
    assert np.all(np.asarray(gradient)[~real] == 0) and np.isfinite(gradient).all()


def test_an_undecided_attention_has_the_smaller_loss():
    even, sharp = jnp.full((2, 2, 3), 1 / 3), jnp.zeros((2, 2, 3)).at[..., 0].set(1.0)
    assert total(even) < total(sharp) == 0


def test_counts_tokens_or_sentences():
    assert attention_entropy.Term().count(BATCH) == 3
    assert attention_entropy.Term(reduction="per_sentence").count(BATCH) == 2
